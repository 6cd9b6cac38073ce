"""Puts itself into evaluation mode, for good or for the length of a call."""

# /// fixture
# task = "batch_norm"
# expect = ["REJECTED", "WRONG_VALUE"]
# variants = ["for good", "during a call"]
# ///
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(48)

    def forward(self, x):
        self.norm.eval()
        out = self.norm(x)
        if VARIANT == "during a call":
            self.norm.train()
        return out
