"""Calls the library's function with the layer's buffers."""

# /// fixture
# task = "batch_norm"
# ///
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(48)

    def forward(self, x):
        n = self.norm
        n.num_batches_tracked.add_(1)
        return F.batch_norm(x, n.running_mean, n.running_var, n.weight, n.bias, True, 0.1, n.eps)
