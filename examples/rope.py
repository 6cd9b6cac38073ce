"""Rotary position embedding of queries and keys (Su et al., 2021), in the half-rotated form."""

import torch
from torch import nn

BATCH, HEADS, TOKENS, HEAD_DIM = 2, 16, 128, 64


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    """Returns (-second half, first half) of the last dimension."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Model(nn.Module):
    """Rotates queries and keys by angles that grow with the position."""

    def __init__(self, tokens: int, head_dim: int, base: float = 10000.0) -> None:
        super().__init__()
        frequency = base ** (-torch.arange(0, head_dim, 2).float() / head_dim)
        angle = torch.outer(torch.arange(tokens).float(), frequency)
        angle = torch.cat((angle, angle), dim=-1)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return q * self.cos + rotate_half(q) * self.sin, k * self.cos + rotate_half(k) * self.sin


def get_inputs():
    shape = (BATCH, HEADS, TOKENS, HEAD_DIM)
    return [torch.randn(shape), torch.randn(shape)]


def get_init_inputs():
    return [TOKENS, HEAD_DIM]
