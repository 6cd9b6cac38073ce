"""Scaled, causally masked softmax over attention scores."""

import math

import torch
from torch import nn

BATCH, HEADS, TOKENS, HEAD_DIM = 2, 8, 256, 64


class Model(nn.Module):
    """Scales the scores, hides later positions and padding, normalises each row."""

    def __init__(self, tokens: int, head_dim: int) -> None:
        super().__init__()
        self.scale = 1 / math.sqrt(head_dim)
        self.register_buffer("later", torch.ones(tokens, tokens, dtype=torch.bool).triu(1))

    def forward(self, scores: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        hidden = self.later | padding[:, None, None, :]
        return torch.softmax((scores * self.scale).masked_fill(hidden, float("-inf")), dim=-1)


def get_inputs():
    lengths = torch.randint(TOKENS // 2, TOKENS + 1, (BATCH,))
    padding = torch.arange(TOKENS)[None, :] >= lengths[:, None]
    return [torch.randn(BATCH, HEADS, TOKENS, TOKENS) * 8, padding]


def get_init_inputs():
    return [TOKENS, HEAD_DIM]
