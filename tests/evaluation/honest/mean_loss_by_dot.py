"""Takes the squared distance as a dot product of the difference with itself, by rows."""

# /// fixture
# task = "mean_loss"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        d = x - y
        rows = torch.linalg.vecdot(d, d)
        return rows.sum() / d.numel()
