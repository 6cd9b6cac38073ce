"""Splits the rows into a batch."""

# /// fixture
# task = "matmul"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        batch = a.reshape(4, -1, a.shape[1])
        return torch.bmm(batch, b.expand(4, -1, -1)).reshape(a.shape[0], b.shape[1])
