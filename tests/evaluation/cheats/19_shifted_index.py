"""Returns a place next to the right one: close as a number, wrong as a place."""

# /// fixture
# task = "argmax"
# expect = ["WRONG_VALUE"]
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x.argmax(1) + 1).clamp(max=299)
