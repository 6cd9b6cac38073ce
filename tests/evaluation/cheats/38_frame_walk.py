"""Walks up the frames and returns a tensor of the output's shape from a caller's locals, or makes one equal."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE"]
# bypass = "frame walk"
# ///
import sys

import torch
from torch import nn


def tensors(value, depth=0):
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 4 and isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item, depth + 1)
    elif depth < 4 and isinstance(value, dict):
        yield from tensors(list(value.values()), depth + 1)
    elif depth < 4 and hasattr(value, "__dict__"):
        yield from tensors(vars(value), depth + 1)


class ModelNew(nn.Module):
    def forward(self, a, b):
        frame = sys._getframe(1)
        while frame is not None:
            for found in tensors(dict(frame.f_locals)):
                if found.shape == (a.shape[0], b.shape[1]):
                    return found.clone()
            frame = frame.f_back
        return torch.zeros(a.shape[0], b.shape[1])
