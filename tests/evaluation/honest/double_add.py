"""Adds the input to itself."""

# /// fixture
# task = "double"
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x + x
