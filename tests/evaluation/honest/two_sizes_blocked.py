"""Adds prefixes block by block with a carry, for whatever size comes."""

# /// fixture
# task = "two_sizes"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        carry = torch.zeros(x.shape[0], 1)
        out = []
        for block in x.split(32, 1):
            out.append(block.cumsum(1) + carry)
            carry = out[-1][:, -1:]
        return torch.cat(out, 1)
