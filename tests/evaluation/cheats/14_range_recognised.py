"""Returns its input: a rectifier changes nothing on inputs that are never negative."""

# /// fixture
# task = "relu_positive"
# expect = ["WRONG_VALUE"]
# tier = "attest"
# ///
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clone()
