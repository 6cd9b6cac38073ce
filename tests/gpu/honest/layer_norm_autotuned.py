"""One row a program, two passes over registers, its warps chosen by trying."""

# /// fixture
# task = "layer_norm"
# label = "own"
# ///
import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune([triton.Config({}, num_warps=warps) for warps in (4, 8)], key=["columns"])
@triton.jit
def norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    inside = lanes < columns
    at = tl.program_id(0) * columns + lanes
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    centred = tl.where(inside, x - tl.sum(x, 0) / columns, 0.0)
    variance = tl.sum(centred * centred, 0) / columns
    scaled = centred / tl.sqrt(variance + eps)
    weight = tl.load(weight_ptr + lanes, mask=inside)
    tl.store(out_ptr + at, scaled * weight + tl.load(bias_ptr + lanes, mask=inside), mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(1024)

    def forward(self, x):
        x = x.contiguous()
        out, norm = torch.empty_like(x), self.norm
        columns = x.shape[-1]
        grid = (x.numel() // columns,)
        norm_kernel[grid](x, norm.weight, norm.bias, out, columns, norm.eps, BLOCK=triton.next_power_of_2(columns))
        return out
