"""Scales the query instead of the scores, and multiplies in batches."""

# /// fixture
# task = "attention"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        scores = torch.bmm(q * 0.125, k.mT)
        return torch.bmm(scores.softmax(-1), v)
