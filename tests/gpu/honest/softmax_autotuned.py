"""One row a program, its warps chosen by trying."""

# /// fixture
# task = "softmax"
# label = "own"
# ///
import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune([triton.Config({}, num_warps=warps) for warps in (4, 8)], key=["columns"])
@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    at = tl.program_id(0) * columns + lanes
    x = tl.load(x_ptr + at, mask=lanes < columns, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + at, e / tl.sum(e, 0), mask=lanes < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        columns = x.shape[-1]
        softmax_kernel[(x.numel() // columns,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
