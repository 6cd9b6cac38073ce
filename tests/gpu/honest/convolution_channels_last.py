"""Channels last inside, the layout of the input outside."""

# /// fixture
# task = "convolution"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(32, 48, 3, padding=1)

    def forward(self, x):
        conv = self.conv
        last = torch.channels_last
        weight = conv.weight.contiguous(memory_format=last)
        out = torch.conv2d(x.contiguous(memory_format=last), weight, conv.bias, padding=1)
        return out.contiguous()
