"""A product over so many terms of one sign that each output is nearly the same number."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.rand(16, 65536), torch.rand(65536, 1)]
