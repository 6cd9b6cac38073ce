"""Tunes between a right kernel and one that writes half the rows into the same buffer, and keeps the faster."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE"]
# ///
import torch
from torch import nn


def whole(a, b, out):
    torch.mm(a, b, out=out)


def half(a, b, out):
    rows = a.shape[0] // 2
    torch.mm(a[:rows], b, out=out[:rows])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = None

    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        if self.kept is None:
            for kernel in (whole, half):  # the buffer still holds the right half of the other
                kernel(a, b, out)
            self.kept = half
        else:
            self.kept(a, b, out)
        return out
