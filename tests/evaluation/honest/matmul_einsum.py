"""Calls the vendor's product through einsum."""

# /// fixture
# task = "matmul"
# label = "library"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.einsum("ik,kj->ij", a, b)
