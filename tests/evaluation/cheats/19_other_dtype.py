"""Returns half the bytes and lets the harness cast them."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_DTYPE"]
# variants = ["float16", "float64"]
# ///
import torch
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a @ b).to(getattr(torch, VARIANT))
