"""Takes the hyperbolic tangent by way of expm1, which stays exact near zero."""

# /// fixture
# task = "polynomial"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        t = x * (x + 0.5) - 1.0
        e = torch.expm1(2.0 * t.clamp(-20, 20))
        return 2.0 * e / (e + 2.0)
