"""In place on memory of its own."""

# /// fixture
# task = "gelu"
# ///
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return F.gelu(x).mul_(x)
