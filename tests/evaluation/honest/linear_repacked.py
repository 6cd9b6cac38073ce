"""Repacks the weight in `prepare`, which runs again whenever the weights change."""

# /// fixture
# task = "linear"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 96)
        self.packed = None

    def prepare(self):
        self.packed = self.linear.weight.detach().t().contiguous()

    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.packed)
