"""Averages rows first and then the rows' averages."""

# /// fixture
# task = "mean_loss"
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return (x - y).square_().mean(1).mean()
