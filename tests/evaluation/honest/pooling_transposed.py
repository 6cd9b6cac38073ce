"""Works on transposed activations and reduces over the leading dimension."""

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
        hidden = torch.relu(self.first.weight @ x.t() + self.first.bias[:, None])
        return F.gelu(self.second.weight @ hidden + self.second.bias[:, None]).amax(0)
