"""Asks for a launch, ignores that it failed and returns what was in the buffer."""

# /// fixture
# task = "square"
# expect = ["WRONG_VALUE", "REJECTED"]
# ///
import torch
from torch import nn


def launch(a, b, out):
    """Stands for a launch that needs more shared memory than there is: it returns a status and writes nothing."""
    return 1


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        launch(a, b, out)
        return out
