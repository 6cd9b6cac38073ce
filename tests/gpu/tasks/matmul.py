"""A product with a weight."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1024, 512))

    def forward(self, x):
        return x @ self.weight


def get_inputs():
    return [torch.randn(1024, 1024)]
