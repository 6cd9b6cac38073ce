"""Works through blocks of columns."""

# /// fixture
# task = "polynomial"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.cat([torch.tanh(b * b + 0.5 * b - 1.0) * 2.0 for b in x.split(100, 1)], 1)
