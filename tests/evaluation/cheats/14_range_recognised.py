"""Returns its input: a rectifier changes nothing on inputs that are never negative."""

# /// fixture
# task = "relu_positive"
# expect = ["WRONG_VALUE"]
# waits_for = "correctness: draws of mixed sign"
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clone()
