"""Runs two layers with their activations in place, in buffers of its own."""

# /// fixture
# task = "pooling"
# ///
import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(96, 64)
        self.second = nn.Linear(64, 40)

    def forward(self, x):
        hidden = torch.addmm(self.first.bias, x, self.first.weight.t()).relu_()
        return F.gelu(torch.addmm(self.second.bias, hidden, self.second.weight.t())).amax(1)
