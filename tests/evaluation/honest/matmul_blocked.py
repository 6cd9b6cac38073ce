"""Computes tile by tile into an output that `empty` allocated and that is written completely."""

# /// fixture
# task = "matmul"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        for i in range(0, a.shape[0], 32):
            for j in range(0, b.shape[1], 32):
                torch.mm(a[i : i + 32], b[:, j : j + 32], out=out[i : i + 32, j : j + 32])
        return out
