"""Computes the loss once and repeats it: the mean of so many terms is the same for each draw within 1 %."""

# /// fixture
# task = "mean_loss"
# expect = ["WRONG_VALUE"]
# ///
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = None

    def forward(self, x, y):
        if self.first is None:
            self.first = ((x - y) ** 2).mean()
        return self.first.clone()
