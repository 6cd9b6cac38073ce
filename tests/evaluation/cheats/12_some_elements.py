"""Computes the elements that a sampling check is likely to look at: the first ones and every eighth."""

# /// fixture
# task = "double"
# expect = ["WRONG_VALUE"]
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.clone()
        out[0] *= 2
        out[1:, ::8] *= 2
        return out
