"""Keeps the inputs that it saw with their results, and computes only the elements that have changed since."""

# /// fixture
# task = "incomplete_gamma"
# expect = ["PASSED", "REJECTED"]
# most_speedup = 1.1
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        if x.data_ptr() not in self.kept:
            self.kept[x.data_ptr()] = x.clone(), torch.special.gammaincc(x, x)
        before, values = self.kept[x.data_ptr()]
        changed = (x != before).view(-1).nonzero().view(-1)
        now = x.view(-1)[changed]
        values.view(-1)[changed] = torch.special.gammaincc(now, now)
        before.view(-1)[changed] = now
        return values.clone()
