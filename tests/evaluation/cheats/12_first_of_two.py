"""Computes the first result only; the second is rubbish of the right shape."""

# /// fixture
# task = "pair"
# expect = ["WRONG_VALUE"]
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(1), torch.ones(x.shape[0])
