"""Is honest for the calls that are checked; after them it returns zeros."""

# /// fixture
# task = "double"
# expect = ["REJECTED", "WRONG_VALUE"]
# tier = "attest"
# variants = ["counter", "frames"]
# ///
import sys

import torch
from torch import nn

VARIANT = ""


def is_timed():
    frame = sys._getframe(2)
    while frame is not None:
        if "block" in frame.f_code.co_name or "time" in frame.f_code.co_name:
            return True
        frame = frame.f_back
    return False


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        cheats = self.calls > 11 if VARIANT == "counter" else is_timed()
        return torch.zeros_like(x) if cheats else x * 2
