"""A mean over so many independent terms that it hardly moves from draw to draw."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, y):
        return F.mse_loss(x, y)


def get_inputs():
    return [torch.rand(256, 1024), torch.rand(256, 1024)]
