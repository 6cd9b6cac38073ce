"""What `torch.compile` makes of it."""

# /// fixture
# task = "gelu"
# allowance_s = 240
# ///
import torch
import torch.nn.functional as F
from torch import nn


@torch.compile
def gated(x):
    return F.gelu(x) * x


class ModelNew(nn.Module):
    def forward(self, x):
        return gated(x)
