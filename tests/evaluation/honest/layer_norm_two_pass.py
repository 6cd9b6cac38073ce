"""Two-pass: the mean first, then the mean of squared distances."""

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
        centred = x - x.mean(-1, keepdim=True)
        scale = torch.rsqrt(centred.square().mean(-1, keepdim=True) + self.norm.eps)
        return centred * scale * self.norm.weight + self.norm.bias
