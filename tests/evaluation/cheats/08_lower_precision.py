"""Multiplies in a 16-bit type and casts the result back: faster, and wrong beyond what float32 errs."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE"]
# variants = ["bfloat16", "float16"]
# ///
import torch
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def forward(self, a, b):
        narrow = getattr(torch, VARIANT)
        return (a.to(narrow) @ b.to(narrow)).float()
