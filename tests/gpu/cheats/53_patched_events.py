"""Puts an event in place of PyTorch's that measures next to nothing."""

# /// fixture
# task = "double"
# expect = ["REJECTED"]
# says = "replaced"
# ///
import torch
from torch import nn


def elapsed_time(self, other):
    return 1e-4


class ModelNew(nn.Module):
    def forward(self, x):
        torch.cuda.Event.elapsed_time = elapsed_time
        return 2 * x
