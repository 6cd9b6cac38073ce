"""Normalises a batch and leaves the running statistics alone."""

# /// fixture
# task = "batch_norm"
# expect = ["WRONG_VALUE"]
# variants = ["none", "all but the counter"]
# ///
from torch import nn
from torch.nn import functional as F

VARIANT = ""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(48)

    def forward(self, x):
        n = self.norm
        if VARIANT == "none":
            return F.batch_norm(x, None, None, n.weight, n.bias, True, 0.1, 1e-5)
        return F.batch_norm(x, n.running_mean, n.running_var, n.weight, n.bias, True, 0.1, 1e-5)
