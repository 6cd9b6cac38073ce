"""A linear layer."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 96)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(64, 128)]
