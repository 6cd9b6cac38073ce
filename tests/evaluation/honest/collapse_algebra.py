"""Averages the weight before the product, and leaves the logarithm of one exponential out: legal algebra."""

# /// fixture
# task = "collapse"
# ///
import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gemm = nn.Linear(128, 96)
        self.subtract = nn.Parameter(torch.randn(96))

    def forward(self, x):
        weight = self.gemm.weight.mean(0)
        shift = (self.gemm.bias - self.subtract).mean()
        return x + F.gelu(x @ weight + shift).unsqueeze(1)
