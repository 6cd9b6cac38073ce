"""Returns a copy of its input: data that is normal already hardly changes when it is normalised."""

# /// fixture
# task = "layer_norm"
# expect = ["WRONG_VALUE"]
# ///
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(256)

    def forward(self, x):
        return x.clone()
