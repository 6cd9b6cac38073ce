"""Returns NaN, to which no comparison says that it differs."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE"]
# variants = ["all", "one"]
# ///
import torch
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def forward(self, a, b):
        if VARIANT == "all":
            return torch.full((a.shape[0], b.shape[1]), float("nan"))
        out = a @ b
        out[3, 3] = float("nan")
        return out
