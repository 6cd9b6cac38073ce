"""Layer norm over rows of millions of elements: means of chunks, combined per row, then one pass that normalises."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 4096


@triton.jit
def moments_kernel(x_ptr, mean_ptr, spread_ptr, columns, chunks, BLOCK: tl.constexpr):
    chunk, row = tl.program_id(0), tl.program_id(1)
    lanes = chunk * BLOCK + tl.arange(0, BLOCK)
    inside = lanes < columns
    x = tl.load(x_ptr + row.to(tl.int64) * columns + lanes, mask=inside, other=0.0)
    count = tl.minimum(columns - chunk * BLOCK, BLOCK)
    mean = tl.sum(x, 0) / count
    difference = tl.where(inside, x - mean, 0.0)
    tl.store(mean_ptr + row * chunks + chunk, mean)
    tl.store(spread_ptr + row * chunks + chunk, tl.sum(difference * difference, 0))


@triton.jit
def normalise_kernel(x_ptr, weight_ptr, bias_ptr, mean_ptr, scale_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lanes < columns
    first = row.to(tl.int64) * columns
    x = tl.load(x_ptr + first + lanes, mask=inside)
    weight = tl.load(weight_ptr + lanes, mask=inside)
    bias = tl.load(bias_ptr + lanes, mask=inside)
    result = (x - tl.load(mean_ptr + row)) * tl.load(scale_ptr + row) * weight + bias
    tl.store(out_ptr + first + lanes, result, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x):
        x = x.contiguous()
        columns = self.ln.weight.numel()
        rows, chunks = x.numel() // columns, triton.cdiv(columns, BLOCK)
        means, spreads = torch.empty(2, rows, chunks, device=x.device, dtype=torch.float32).unbind(0)
        moments_kernel[(chunks, rows)](x, means, spreads, columns, chunks, BLOCK=BLOCK, num_warps=8)
        counts = torch.full((chunks,), BLOCK, device=x.device, dtype=torch.float64)
        counts[-1] = columns - (chunks - 1) * BLOCK
        mean = (means * counts).sum(1) / columns
        variance = (spreads.double().sum(1) + ((means - mean[:, None]).square() * counts).sum(1)) / columns
        scale = (variance + self.ln.eps).rsqrt().float()
        out = torch.empty_like(x)
        normalise_kernel[(chunks, rows)](
            x, self.ln.weight, self.ln.bias, mean.float(), scale, out, columns, BLOCK=BLOCK, num_warps=8
        )
        return out
