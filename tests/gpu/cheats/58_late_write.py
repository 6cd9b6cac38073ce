"""Fills its output after the call has returned."""

# /// fixture
# task = "double"
# expect = ["PASSED", "REJECTED", "WRONG_VALUE"]
# least_ms = 5
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x):
        out = torch.empty_like(x)
        with torch.cuda.stream(self.side):
            torch.cuda._sleep(20_000_000)
            out.copy_(2 * x)
        return out
