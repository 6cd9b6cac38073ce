"""A normalisation over rows, with the weights of a fresh layer."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(256)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(64, 256)]
