"""Computes the whole result in its constructor, from the seed that it is built under, and returns it."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE"]
# variants = ["import", "constructor", "prepare"]
# ///
import torch
from torch import nn

VARIANT = ""
READY = []


def work():
    READY[:] = [torch.randn(96, 160) @ torch.randn(160, 80)]


if VARIANT == "import":
    work()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        if VARIANT == "constructor":
            work()

    def prepare(self):
        if VARIANT == "prepare":
            work()

    def forward(self, a, b):
        return READY[0].clone()
