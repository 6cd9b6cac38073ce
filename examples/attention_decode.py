"""Attention of one decoding step: one new query a head against the cached keys and values."""

import math

import torch
from torch import nn

BATCH, HEADS, CACHED, HEAD_DIM = 2, 16, 512, 64


class Model(nn.Module):
    """softmax(q k^T / sqrt(d) + bias of the cache length) v, one query a head."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(HEAD_DIM)
        empty = torch.arange(CACHED, device=q.device)[None, None, None, :] >= length[:, None, None, None]
        weights = torch.softmax(scores.masked_fill(empty, float("-inf")), dim=-1)
        return torch.matmul(weights, v)


def get_inputs():
    cache = (BATCH, HEADS, CACHED, HEAD_DIM)
    length = torch.randint(CACHED // 2, CACHED + 1, (BATCH,))
    return [torch.randn(BATCH, HEADS, 1, HEAD_DIM), torch.randn(cache), torch.randn(cache), length]
