"""The tail of a small transformer MLP: two linear layers with bias, GELU between them and a residual around."""

import torch
from torch import nn
from torch.nn import functional as F

TOKENS, HIDDEN, INNER = 256, 128, 512


class Model(nn.Module):
    """x + down(gelu(up(x)))."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.up = nn.Linear(hidden, inner)
        self.down = nn.Linear(inner, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(x)))


def get_inputs():
    return [torch.randn(TOKENS, HIDDEN)]


def get_init_inputs():
    return [HIDDEN, INNER]
