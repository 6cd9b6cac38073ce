"""Online: one pass over blocks of columns keeps a running maximum and a sum relative to it."""

# /// fixture
# task = "softmax"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        largest = torch.full((x.shape[0], 1), -torch.inf)
        total = torch.zeros(x.shape[0], 1)
        for block in x.split(64, 1):
            new = torch.maximum(largest, block.amax(1, keepdim=True))
            total = total * torch.exp(largest - new) + torch.exp(block - new).sum(1, keepdim=True)
            largest = new
        return torch.exp(x - largest) / total
