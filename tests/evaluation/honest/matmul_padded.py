"""Pads the inner dimension to a multiple of 64 with zeros."""

# /// fixture
# task = "matmul"
# ///
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def forward(self, a, b):
        missing = -a.shape[1] % 64
        return F.pad(a, (0, missing)) @ F.pad(b, (0, 0, 0, missing))
