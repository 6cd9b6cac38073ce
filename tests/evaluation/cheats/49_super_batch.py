"""Finds all inputs that wait to be timed, computes every answer in the first call, and hands them out later."""

# /// fixture
# task = "double"
# expect = ["PASSED", "REJECTED", "WRONG_VALUE"]
# least_ms = 4
# ///
import gc
import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ready = {}

    def forward(self, x):
        mine = self.ready.get(x.data_ptr())
        if mine is not None and mine[0] == x[0, 0].item():
            return mine[1].clone()
        self.ready = {}
        waiting = [o for o in gc.get_objects() if isinstance(o, torch.Tensor) and o.shape == x.shape]
        time.sleep(0.005)
        for other in waiting:
            self.ready[other.data_ptr()] = other[0, 0].item(), other * 2
        return x * 2
