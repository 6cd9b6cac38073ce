"""Doubles its input in place, as the task does, by adding it."""

# /// fixture
# task = "in_place"
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.add_(x.clone())
