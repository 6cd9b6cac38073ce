"""Programs add to one sum with nothing that keeps them apart."""

# /// fixture
# task = "row_sum"
# expect = ["WRONG_VALUE"]
# ///
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def sum_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + row * columns + lanes, mask=lanes < columns, other=0.0), 0)
    tl.store(out_ptr + row, tl.load(out_ptr + row) + part)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.zeros(rows, device=x.device)
        sum_kernel[(triton.cdiv(columns, 64), rows)](x, out, columns, BLOCK=64)
        return out
