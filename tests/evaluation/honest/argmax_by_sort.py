"""Takes the last of a stable sort, which breaks ties the other way."""

# /// fixture
# task = "argmax"
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sort(dim=1, stable=True).indices[:, -1]
