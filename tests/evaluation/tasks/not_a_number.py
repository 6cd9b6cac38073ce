"""A reference that is not finite itself, against which nothing can be judged."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.log(-x.abs() - 1)


def get_inputs():
    return [torch.randn(16, 64)]
