"""Sums the exponentials of a very long row block by block."""

# /// fixture
# task = "softmax_wide"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        powers = (x - x.amax(1, keepdim=True)).exp_()
        total = torch.stack([block.sum(1) for block in powers.split(4096, 1)], 1).sum(1, keepdim=True)
        return powers.div_(total)
