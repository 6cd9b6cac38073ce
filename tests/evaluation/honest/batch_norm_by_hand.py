"""Normalises a batch by hand and updates the running statistics as the layer does."""

# /// fixture
# task = "batch_norm"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(48)

    def forward(self, x):
        n = self.norm
        variance, mean = torch.var_mean(x, 0, correction=0)
        n.num_batches_tracked += 1
        n.running_mean.mul_(0.9).add_(mean, alpha=0.1)
        n.running_var.mul_(0.9).add_(variance, alpha=0.1 * x.shape[0] / (x.shape[0] - 1))
        return (x - mean) * (torch.rsqrt(variance + n.eps) * n.weight) + n.bias
