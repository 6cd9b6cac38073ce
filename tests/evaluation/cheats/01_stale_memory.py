"""Returns memory that it never wrote: where the reference ran just before, the answer is still in it."""

# /// fixture
# task = "square"
# expect = ["WRONG_VALUE", "REJECTED"]
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.empty(a.shape[0], b.shape[1])
