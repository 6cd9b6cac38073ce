"""Returns the expected value of a long sum of numbers from [0, 1): every output is it within 1 %."""

# /// fixture
# task = "long_mean"
# expect = ["WRONG_VALUE"]
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.full((a.shape[0], b.shape[1]), a.shape[1] / 4)
