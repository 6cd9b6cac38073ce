"""Returns its input untouched: where the reference ran on the same tensor before, it is doubled already."""

# /// fixture
# task = "in_place"
# expect = ["WRONG_VALUE"]
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x
