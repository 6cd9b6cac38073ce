"""Adds up in float64, which is more exact than the task asks."""

# /// fixture
# task = "matmul"
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.double() @ b.double()).float()
