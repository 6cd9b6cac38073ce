"""Multiplies half the bits."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE"]
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1024, 512))

    def forward(self, x):
        return (x.half() @ self.weight.half()).float()
