"""Sum over the middle dimension: each program adds a strip of columns, in 32 partial sums a column."""

import torch
import triton
import triton.language as tl
from torch import nn

ROWS, BLOCK = 32, 128


@triton.jit
def sum_kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    batch = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.arange(0, ROWS)
    inside = column < columns
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, rows, ROWS):
        at = batch * rows * columns + (start + row)[:, None] * columns + column[None, :]
        total += tl.load(x_ptr + at, mask=(start + row < rows)[:, None] & inside[None, :], other=0.0)
    tl.store(out_ptr + batch * columns + column, tl.sum(total, 0), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        x = x.movedim(self.dim, 1).contiguous()
        batch, rows, columns = x.shape
        out = torch.empty(batch, 1, columns, device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(columns, BLOCK), batch)
        sum_kernel[grid](x, out, rows, columns, ROWS=ROWS, BLOCK=BLOCK, num_warps=4)
        return out.movedim(1, self.dim)
