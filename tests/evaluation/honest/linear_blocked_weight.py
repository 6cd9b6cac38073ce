"""Repacks the weight into blocks of 32 rows in `prepare` and multiplies block by block."""

# /// fixture
# task = "linear"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 96)
        self.blocks = []

    def prepare(self):
        self.blocks = [block.detach().t().contiguous() for block in self.linear.weight.split(32)]

    def forward(self, x):
        out = torch.empty(x.shape[0], 96)
        for i, block in enumerate(self.blocks):
            torch.mm(x, block, out=out[:, 32 * i : 32 * (i + 1)])
        return out.add_(self.linear.bias)
