"""Calls the vendor's library in a wrapper and calls that a kernel of its own."""

# /// fixture
# task = "matmul"
# expect = ["PASSED"]
# label = "library"
# ///
import torch
from torch import nn


def my_fused_tiled_gemm_kernel(a, b):
    return torch.mm(a, b)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return my_fused_tiled_gemm_kernel(a, b)
