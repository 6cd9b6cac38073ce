"""Searches all objects for a live module of the reference and calls it."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE"]
# bypass = "gc module"
# ///
import gc

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        for found in gc.get_objects():
            if isinstance(found, nn.Module) and type(found).__name__ in ("Model", "Reference", "RefModel"):
                return found(a, b)
        return torch.zeros(a.shape[0], b.shape[1])
