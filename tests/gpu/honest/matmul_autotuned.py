"""Tiles of a product in full float32, their size chosen by trying."""

# /// fixture
# task = "matmul"
# label = "own"
# ///
import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune(
    [triton.Config({"M": m, "N": 64, "K": 32}, num_warps=4, num_stages=2) for m in (32, 64)], key=["rows", "columns"]
)
@triton.jit
def product_kernel(
    x_ptr, w_ptr, out_ptr, rows, columns, depth, share,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * M + tl.arange(0, M)
    n = tl.program_id(1) * N + tl.arange(0, N)
    first = tl.program_id(2) * share
    total = tl.zeros((M, N), tl.float32)
    for start in range(first, first + share, K):
        k = start + tl.arange(0, K)
        inside = k < depth
        x = tl.load(x_ptr + m[:, None] * depth + k[None, :], mask=(m < rows)[:, None] & inside[None, :], other=0.0)
        w = tl.load(w_ptr + k[:, None] * columns + n[None, :], mask=inside[:, None] & (n < columns)[None, :], other=0.0)
        total = tl.dot(x, w, total, input_precision="ieee")
    out = out_ptr + tl.program_id(2) * rows * columns + m[:, None] * columns + n[None, :]
    tl.store(out, total, mask=(m < rows)[:, None] & (n < columns)[None, :])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1024, 512))

    def forward(self, x):
        x = x.contiguous()
        (rows, depth), columns = x.shape, self.weight.shape[1]
        out = torch.empty(rows, columns, device=x.device)

        def grid(meta):
            return triton.cdiv(rows, meta["M"]), triton.cdiv(columns, meta["N"]), 1

        product_kernel[grid](x, self.weight, out, rows, columns, depth, depth)
        return out
