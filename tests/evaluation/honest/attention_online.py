"""Flash attention: blocks of keys with a running maximum, sum and output."""

# /// fixture
# task = "attention"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        largest = torch.full((*q.shape[:-1], 1), -torch.inf)
        total = torch.zeros_like(largest)
        out = torch.zeros_like(q)
        for key, value in zip(k.split(32, 1), v.split(32, 1), strict=True):
            scores = 0.125 * (q @ key.transpose(-1, -2))
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            old, powers = torch.exp(largest - new), torch.exp(scores - new)
            total = total * old + powers.sum(-1, keepdim=True)
            out = out * old + powers @ value
            largest = new
        return out / total
