"""Adds two half products in a buffer that it allocated with `empty` and wrote whole."""

# /// fixture
# task = "square"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        half = a.shape[1] // 2
        torch.mm(a[:, :half], b[:half], out=out)
        return torch.addmm(out, a[:, half:], b[half:])
