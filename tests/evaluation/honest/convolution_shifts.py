"""Adds nine shifted products of one pixel each."""

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
        height, width = x.shape[2:]
        padded = F.pad(x, (1, 1, 1, 1))
        out = self.conv.bias.view(1, -1, 1, 1).expand(x.shape[0], -1, height, width).clone()
        for i in range(3):
            for j in range(3):
                window = padded[:, :, i : i + height, j : j + width]
                out += torch.einsum("oc,nchw->nohw", self.conv.weight[:, :, i, j], window)
        return out.relu_()
