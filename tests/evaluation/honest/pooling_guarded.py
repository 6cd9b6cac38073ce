"""Reads its sizes with a guard and a `finally`, which is no fallback."""

# /// fixture
# task = "pooling"
# ///
import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(96, 64)
        self.second = nn.Linear(64, 40)
        self.calls = 0

    def forward(self, x):
        if x.dim() != 2:
            raise ValueError(f"expected a matrix, got {list(x.shape)}")
        try:
            hidden = torch.relu(F.linear(x, self.first.weight, self.first.bias))
        finally:
            self.calls += 1
        return F.gelu(F.linear(hidden, self.second.weight, self.second.bias)).amax(1)
