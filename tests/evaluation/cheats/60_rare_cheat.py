"""Skips the work in one call of twenty, never in the first ones."""

# /// fixture
# task = "double"
# tier = "attest"
# expect = ["REJECTED", "WRONG_VALUE"]
# chances = 2
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2 if self.calls < 40 or self.calls % 20 else torch.zeros_like(x)
