"""Reads all inputs that it has seen after each call, so that the next finds its own in the cache."""

# /// fixture
# task = "double"
# expect = ["PASSED", "REJECTED"]
# most_speedup = 1.15
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()
        self.seen = {}

    def forward(self, x):
        out = 2 * x
        self.seen[x.data_ptr()] = x.detach()
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            for given in list(self.seen.values())[-2:]:
                given.sum()
        return out
