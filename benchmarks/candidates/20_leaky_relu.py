"""x, or a small share of it where it is negative."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 4096


@triton.jit
def leaky_relu_kernel(x_ptr, out_ptr, n, slope, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, tl.where(x > 0, x, x * slope), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, negative_slope: float = 0.01):
        super().__init__()
        self.slope = negative_slope

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        leaky_relu_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), self.slope, BLOCK=BLOCK, num_warps=8)
        return out
