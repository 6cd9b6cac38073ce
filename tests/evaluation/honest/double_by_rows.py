"""Works row by row into one output."""

# /// fixture
# task = "double"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        for i in range(0, x.shape[0], 16):
            torch.mul(x[i : i + 16], 2, out=out[i : i + 16])
        return out
