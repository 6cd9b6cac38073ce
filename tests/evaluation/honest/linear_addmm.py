"""Calls the vendor's product with the bias fused."""

# /// fixture
# task = "linear"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 96)

    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.linear.weight.t())
