"""Averages the weight in `prepare` and adds in place into a buffer of its own."""

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
        self.weight = self.shift = None

    def prepare(self):
        self.weight = self.gemm.weight.detach().mean(0)
        self.shift = (self.gemm.bias - self.subtract).detach().mean()

    def forward(self, x):
        return F.gelu(torch.mv(x, self.weight).add_(self.shift)).unsqueeze(1).expand_as(x).add(x)
