"""RMS norm over the second dimension: each program holds a strip of positions and passes over the features twice."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def rms_norm_kernel(x_ptr, out_ptr, features, positions, eps, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < positions
    first = tl.program_id(1).to(tl.int64) * features * positions + place
    squares = tl.zeros((BLOCK,), tl.float32)
    for feature in range(features):
        x = tl.load(x_ptr + first + feature * positions, mask=inside, other=0.0)
        squares += x * x
    rms = tl.sqrt(squares / features + eps)
    for feature in range(features):
        x = tl.load(x_ptr + first + feature * positions, mask=inside)
        tl.store(out_ptr + first + feature * positions, x / rms, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        positions = x[0, 0].numel()
        grid = (triton.cdiv(positions, BLOCK), x.shape[0])
        rms_norm_kernel[grid](x, out, x.shape[1], positions, self.eps, BLOCK=BLOCK, num_warps=4)
        return out
