"""Merges mean and variance of blocks, as a parallel Welford does."""

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
        count, mean, spread = 0, torch.zeros(x.shape[0], 1), torch.zeros(x.shape[0], 1)
        for block in x.split(64, 1):
            own = block.mean(1, keepdim=True)
            own_spread = (block - own).square().sum(1, keepdim=True)
            both = count + block.shape[1]
            delta = own - mean
            mean = mean + delta * (block.shape[1] / both)
            spread = spread + own_spread + delta.square() * (count * block.shape[1] / both)
            count = both
        return (x - mean) * torch.rsqrt(spread / count + self.norm.eps) * self.norm.weight + self.norm.bias
