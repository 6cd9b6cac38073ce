"""Clears the input in place and returns zeros: a reference that reads the input afterwards gives zeros too."""

# /// fixture
# task = "double"
# expect = ["WRONG_VALUE"]
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        x.zero_()
        return torch.zeros_like(x)
