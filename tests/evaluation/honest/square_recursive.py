"""Multiplies by quadrants, one level deep."""

# /// fixture
# task = "square"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        (a11, a12), (a21, a22) = (rows.chunk(2, 1) for rows in a.chunk(2, 0))
        (b11, b12), (b21, b22) = (rows.chunk(2, 1) for rows in b.chunk(2, 0))
        top = torch.cat([a11 @ b11 + a12 @ b21, a11 @ b12 + a12 @ b22], 1)
        return torch.cat([top, torch.cat([a21 @ b11 + a22 @ b21, a21 @ b12 + a22 @ b22], 1)], 0)
