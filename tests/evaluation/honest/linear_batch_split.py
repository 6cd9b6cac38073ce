"""Works through the batch in parts that stay in the cache."""

# /// fixture
# task = "linear"
# ///
import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 96)

    def forward(self, x):
        return torch.cat([F.linear(part, self.linear.weight, self.linear.bias) for part in x.split(16)])
