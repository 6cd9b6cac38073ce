"""Runs in channels_last and returns a result with these strides."""

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
        x = x.contiguous(memory_format=torch.channels_last)
        return F.conv2d(x, self.conv.weight, self.conv.bias, padding=1).relu_()
