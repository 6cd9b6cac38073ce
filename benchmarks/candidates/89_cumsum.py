"""Running sum of each row: a scan of one block after the other, with the sum so far carried on."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 2048


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    lanes = tl.arange(0, BLOCK)
    carried = 0.0
    for start in range(0, columns, BLOCK):
        inside = start + lanes < columns
        x = tl.load(x_ptr + row + start + lanes, mask=inside, other=0.0)
        tl.store(out_ptr + row + start + lanes, tl.cumsum(x, 0) + carried, mask=inside)
        carried += tl.sum(x, 0)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        x = x.movedim(self.dim, -1).contiguous()
        out = torch.empty_like(x)
        cumsum_kernel[(x.numel() // x.shape[-1],)](x, out, x.shape[-1], BLOCK=BLOCK, num_warps=8)
        return out.movedim(-1, self.dim)
