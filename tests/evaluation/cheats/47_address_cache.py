"""Keeps results by the address, identity or shape of the input, whatever is in it."""

# /// fixture
# task = "double"
# expect = ["WRONG_VALUE"]
# variants = ["address", "identity", "shape"]
# ///
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        key = {"address": x.data_ptr(), "identity": id(x), "shape": x.shape}[VARIANT]
        if key not in self.kept:
            self.kept[key] = x * 2
        return self.kept[key].clone()
