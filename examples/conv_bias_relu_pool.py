"""The stem of a small image network: 3x3 convolution with bias, ReLU, 2x2 max pooling."""

import torch
from torch import nn

BATCH, CHANNELS, HEIGHT, WIDTH, FILTERS = 4, 3, 128, 128, 32


class Model(nn.Module):
    """Convolution, bias, ReLU and max pooling."""

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, kernel_size=3, padding=1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(torch.relu(self.conv(x)))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
