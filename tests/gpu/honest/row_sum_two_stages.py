"""Partial sums of a row by several programs, then those of each row by one: no atomics."""

# /// fixture
# task = "row_sum"
# label = "own"
# ///
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def sum_kernel(x_ptr, out_ptr, columns, share, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(part * share, (part + 1) * share, BLOCK):
        inside = (start + lanes < columns) & (start + lanes < (part + 1) * share)
        total += tl.load(x_ptr + row * columns + start + lanes, mask=inside, other=0.0)
    tl.store(out_ptr + row * tl.num_programs(1) + part, tl.sum(total, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        parts = torch.empty(rows, 4, device=x.device)
        out = torch.empty(rows, device=x.device)
        sum_kernel[(rows, 4)](x, parts, columns, triton.cdiv(columns, 4), BLOCK=1024)
        sum_kernel[(rows, 1)](parts, out, 4, 4, BLOCK=4)
        return out
