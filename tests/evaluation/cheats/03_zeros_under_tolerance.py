"""Returns zeros: every value of the softmax is far below an absolute tolerance."""

# /// fixture
# task = "softmax_wide"
# expect = ["WRONG_VALUE"]
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
