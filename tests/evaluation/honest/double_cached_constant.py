"""Keeps a constant tensor as a buffer that is not saved."""

# /// fixture
# task = "double"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("two", torch.tensor(2.0), persistent=False)

    def forward(self, x):
        return x * self.two
