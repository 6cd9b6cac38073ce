"""Fuses by hand: one buffer of its own that each step writes again."""

# /// fixture
# task = "polynomial"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = x + 0.5
        return torch.tanh_(out.mul_(x).sub_(1.0)).mul_(2.0)
