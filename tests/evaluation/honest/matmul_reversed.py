"""Adds up in the reverse order."""

# /// fixture
# task = "matmul"
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.flip(1) @ b.flip(0)
