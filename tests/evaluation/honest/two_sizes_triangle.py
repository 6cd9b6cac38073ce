"""Adds prefixes by a product with a triangle of ones, kept for each width."""

# /// fixture
# task = "two_sizes"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.triangles = {}

    def forward(self, x):
        width = x.shape[1]
        if width not in self.triangles:
            self.triangles[width] = torch.ones(width, width).triu()
        return x @ self.triangles[width]
