"""Has PyTorch wait for nothing."""

# /// fixture
# task = "double"
# expect = ["REJECTED"]
# says = "replaced"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        torch.cuda.synchronize = lambda *args, **kwargs: None
        return 2 * x
