"""Returns two views of one buffer of its own."""

# /// fixture
# task = "pair"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(2, x.shape[0])
        torch.sum(x, 1, out=out[0])
        torch.amax(x, 1, out=out[1])
        return out[0], out[1]
