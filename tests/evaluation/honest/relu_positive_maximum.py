"""Takes the maximum with zero, though the inputs of the task are never negative."""

# /// fixture
# task = "relu_positive"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.maximum(x, torch.zeros((), dtype=x.dtype))
