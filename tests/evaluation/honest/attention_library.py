"""Calls the fused attention of the library."""

# /// fixture
# task = "attention"
# label = "library"
# ///
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, scale=0.125)
