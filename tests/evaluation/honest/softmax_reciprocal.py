"""Multiplies with the reciprocal of the sum."""

# /// fixture
# task = "softmax"
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        powers = (x - x.amax(-1, keepdim=True)).exp()
        return powers * powers.sum(-1, keepdim=True).reciprocal()
