"""Fuses a product and a sum into one operator."""

# /// fixture
# task = "polynomial"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return 2.0 * torch.tanh(torch.addcmul(0.5 * x - 1.0, x, x))
