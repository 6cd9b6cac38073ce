"""The vendor's product, into an output that was allocated for it."""

# /// fixture
# task = "matmul"
# label = "library"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1024, 512))

    def forward(self, x):
        out = torch.empty(x.shape[0], 512, device=x.device)
        return torch.mm(x, self.weight, out=out)
