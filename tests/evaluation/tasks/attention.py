"""Attention of one head."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) * 0.125, dim=-1) @ v


def get_inputs():
    return [torch.randn(2, 96, 64), torch.randn(2, 160, 64), torch.randn(2, 160, 64)]
