"""Sums the weight once, in the constructor or at the first call, and never looks at it again."""

# /// fixture
# task = "linear_sum"
# expect = ["WRONG_VALUE"]
# variants = ["constructor", "first call"]
# ///
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 96)
        self.folded = None
        if VARIANT == "constructor":
            self.fold()

    def fold(self):
        self.folded = self.linear.weight.sum(0).detach().clone(), self.linear.bias.sum().detach().clone()

    def forward(self, x):
        if self.folded is None:
            self.fold()
        weight, bias = self.folded
        return x @ weight + bias
