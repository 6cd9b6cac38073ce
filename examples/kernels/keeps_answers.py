"""A cheat, to see it lose: it computes what is asked once, and hands the answer out again for tensors that it knows."""

import torch
from torch import nn


class ModelNew(nn.Module):
    """Is as fast as a look at two addresses, and right as long as nobody writes new values there."""

    def __init__(self, hidden: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden) * 0.1 + 1)
        self.eps = eps
        self.kept: dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor]] = {}

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        known = x.data_ptr(), residual.data_ptr()
        if known not in self.kept:
            total = x + residual
            scale = torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + self.eps)
            self.kept[known] = total * scale * self.weight, total
        return self.kept[known]
