"""Maximum and sum of a row in one pass over blocks of it, rescaled as the maximum grows."""

# /// fixture
# task = "softmax"
# label = "own"
# ///
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    lanes = tl.arange(0, BLOCK)
    most = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        x = tl.load(x_ptr + row + start + lanes, mask=start + lanes < columns, other=-float("inf"))
        now = tl.maximum(most, tl.max(x, 0))
        total = total * tl.exp(most - now) + tl.sum(tl.exp(x - now), 0)
        most = now
    for start in range(0, columns, BLOCK):
        inside = start + lanes < columns
        x = tl.load(x_ptr + row + start + lanes, mask=inside)
        tl.store(out_ptr + row + start + lanes, tl.exp(x - most) / total, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        softmax_kernel[(x.numel() // x.shape[-1],)](x, out, x.shape[-1], BLOCK=1024)
        return out
