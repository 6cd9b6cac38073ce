"""LayerNorm followed by GELU."""

import torch
from torch import nn

BATCH, TOKENS, HIDDEN = 4, 64, 1024


class Model(nn.Module):
    """Normalises each token over its features and applies the exact (erf) GELU."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.activation = nn.GELU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(self.norm(x))


def get_inputs():
    return [torch.randn(BATCH, TOKENS, HIDDEN) * 2 + 0.5]


def get_init_inputs():
    return [HIDDEN]
