"""One of two settings that are tried leaves the end of each block unwritten."""

# /// fixture
# task = "double"
# expect = ["WRONG_VALUE", "PASSED"]
# most_speedup = 1.5
# ///
import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune([triton.Config({"BLOCK": block}) for block in (512, 1024)], key=["n"])
@triton.jit
def twice(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    at = tl.program_id(0) * BLOCK + lanes
    written = (at < n) & (lanes < 600)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=written)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        twice[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out
