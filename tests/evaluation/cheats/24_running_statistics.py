"""Normalises with the running statistics, as in evaluation mode, while the task trains."""

# /// fixture
# task = "batch_norm"
# expect = ["WRONG_VALUE"]
# ///
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(48)

    def forward(self, x):
        n = self.norm
        return F.batch_norm(x, n.running_mean, n.running_var, n.weight, n.bias, False, 0.1, 1e-5)
