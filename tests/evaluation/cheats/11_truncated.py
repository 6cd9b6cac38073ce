"""Skips the last rows, the tail of the sum, or the last columns, which few checks look at."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE"]
# variants = ["rows", "tail of the sum", "columns"]
# ///
import torch
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def forward(self, a, b):
        if VARIANT == "tail of the sum":
            return a[:, :-2] @ b[:-2]
        out = torch.zeros(a.shape[0], b.shape[1])
        if VARIANT == "rows":
            out[:-7] = a[:-7] @ b
        else:
            out[:, :-1] = a @ b[:, :-1]
        return out
