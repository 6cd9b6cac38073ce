"""Adds up outer products of blocks in place, within a buffer of its own call."""

# /// fixture
# task = "matmul"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.zeros(a.shape[0], b.shape[1])
        for k in range(0, a.shape[1], 40):
            out.addmm_(a[:, k : k + 40], b[k : k + 40])
        return out
