"""Takes the exponential from the bits of a float, right to a few percent."""

# /// fixture
# task = "softmax"
# expect = ["WRONG_VALUE"]
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        shifted = x - x.amax(1, keepdim=True)
        bits = (shifted * 12102203.0 + 1064866805.0).clamp(min=0).to(torch.int32)
        crude = bits.view(torch.float32)
        return crude / crude.sum(1, keepdim=True)
