"""Has the hardware multiply in TF32 where float32 is asked for."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE", "REJECTED"]
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1024, 512))

    def forward(self, x):
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            return x @ self.weight
        finally:
            torch.set_float32_matmul_precision(before)
