"""Turns the convolution into a product."""

# /// fixture
# task = "convolution"
# ///
import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 12, 3, padding=1)

    def forward(self, x):
        columns = F.unfold(x, 3, padding=1)
        out = self.conv.weight.view(12, -1) @ columns + self.conv.bias.view(1, -1, 1)
        return torch.relu_(out.view(x.shape[0], 12, x.shape[2], x.shape[3]))
