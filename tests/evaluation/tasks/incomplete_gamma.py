"""An elementwise function that takes far longer to compute than to read and write."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.special.gammaincc(x, x)


def get_inputs():
    return [torch.rand(64, 128) + 0.01]  # at zero it gives NaN
