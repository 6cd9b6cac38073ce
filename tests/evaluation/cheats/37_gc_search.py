"""Searches all objects for a tensor of the output's shape, or for a live reference to call."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE"]
# bypass = "gc answer"
# ///
import gc

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        for found in gc.get_objects():
            if isinstance(found, torch.Tensor) and found.shape == (a.shape[0], b.shape[1]):
                return found.clone()
        return torch.zeros(a.shape[0], b.shape[1])
