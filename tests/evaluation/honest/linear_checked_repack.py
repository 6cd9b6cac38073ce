"""Repacks the weight when it has another version or memory: a cache that is legal, as it looks at what changed."""

# /// fixture
# task = "linear"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 96)
        self.key = self.packed = None

    def forward(self, x):
        weight = self.linear.weight
        key = weight._version, weight.data_ptr()
        if key != self.key:
            self.key, self.packed = key, weight.t().contiguous()
        return torch.addmm(self.linear.bias, x, self.packed)
