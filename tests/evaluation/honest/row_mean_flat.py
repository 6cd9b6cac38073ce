"""Sums a transposed copy and divides."""

# /// fixture
# task = "row_mean"
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.t().contiguous().sum(0).div_(x.shape[1])
