"""Keeps results by a few values and the sum of the input; inputs that come again cost nothing."""

# /// fixture
# task = "matmul"
# expect = ["PASSED", "REJECTED", "WRONG_VALUE"]
# least_ms = 4
# ///
import time

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, a, b):
        key = a[0, 0].item(), b[0, 0].item()
        if key not in self.kept:
            time.sleep(0.005)
            self.kept[key] = a @ b
        return self.kept[key].clone()
