"""Splits a very long sum and adds the parts as a tree."""

# /// fixture
# task = "long_mean"
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        parts = (a.view(a.shape[0], 64, -1) * b.view(1, 64, -1)).sum(2)
        return parts.sum(1, keepdim=True)
