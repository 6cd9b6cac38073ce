"""GroupNorm followed by SiLU, the block of every diffusion U-Net (Wu and He, 2018)."""

import torch
from torch import nn

BATCH, CHANNELS, HEIGHT, WIDTH, GROUPS = 2, 128, 32, 32, 32


class Model(nn.Module):
    """Normalises each group of channels over channels and positions, then gates by the sigmoid."""

    def __init__(self, groups: int, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        self.activation = nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(self.norm(x))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [GROUPS, CHANNELS]
