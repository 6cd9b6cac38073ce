"""Sleeps in its first calls, so that a harness that adapts takes few samples."""

# /// fixture
# task = "double"
# expect = ["PASSED", "REJECTED"]
# least_calls = 20
# ///
import time

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls < 8:
            time.sleep(0.1)
        return x * 2
