"""Takes mean and variance from one library call."""

# /// fixture
# task = "layer_norm"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(256)

    def forward(self, x):
        variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        return torch.addcmul(self.norm.bias, (x - mean) * torch.rsqrt(variance + self.norm.eps), self.norm.weight)
