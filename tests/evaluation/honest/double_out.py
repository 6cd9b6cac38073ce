"""Writes into an output that it allocated."""

# /// fixture
# task = "double"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.add(x, x, out=torch.empty_like(x))
