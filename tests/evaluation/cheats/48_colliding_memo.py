"""Keeps results by the first element and the sum, to both of which two different inputs can agree."""

# /// fixture
# task = "double"
# expect = ["PASSED", "REJECTED", "WRONG_VALUE"]
# least_ms = 4
# ///
import time

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        key = x[0, 0].item(), x.sum().item()
        if key not in self.kept:
            time.sleep(0.005)
            self.kept[key] = x * 2
        return self.kept[key].clone()
