"""SwiGLU after its projection: SiLU of one half times the other half (Shazeer, 2020)."""

import torch
from torch import nn
from torch.nn import functional as F

TOKENS, INNER = 64, 5632


class Model(nn.Module):
    """Splits the fused gate and up projection and gates one half with the other."""

    def forward(self, gate_up: torch.Tensor) -> torch.Tensor:
        gate, up = gate_up.chunk(2, dim=-1)
        return F.silu(gate) * up


def get_inputs():
    return [torch.randn(TOKENS, 2 * INNER)]
