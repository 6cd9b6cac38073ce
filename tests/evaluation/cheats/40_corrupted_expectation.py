"""Overwrites every tensor that it finds, so that expected values are NaN or zero too, and returns zeros."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE", "REJECTED"]
# variants = ["nan", "zero"]
# ///
import gc

import torch
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def forward(self, a, b):
        fill = float("nan") if VARIANT == "nan" else 0.0
        for found in gc.get_objects():
            if isinstance(found, torch.Tensor) and found is not a and found is not b and found.is_floating_point():
                found.fill_(fill)
        return torch.full((a.shape[0], b.shape[1]), fill)
