"""Sums the weight first, at each call: legal algebra that turns a product of matrices into one of a vector."""

# /// fixture
# task = "linear_sum"
# ///
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 96)

    def forward(self, x):
        return x @ self.linear.weight.sum(0) + self.linear.bias.sum()
