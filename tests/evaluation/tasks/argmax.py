"""The place of the largest element of each row."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.argmax(1)


def get_inputs():
    return [torch.randn(64, 300)]
