"""A linear head whose outputs are averaged: the mean moves in front of the product."""

import torch
from torch import nn

BATCH, FEATURES, OUTPUTS = 256, 1024, 1024


class Model(nn.Module):
    """Mean over the outputs of a linear layer, one number a row."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).mean(dim=-1, keepdim=True)


def get_inputs():
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs():
    return [FEATURES, OUTPUTS]
