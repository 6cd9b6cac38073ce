"""Answers by the address of its input."""

# /// fixture
# task = "double"
# expect = ["WRONG_VALUE", "REJECTED"]
# ///
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.answers = {}

    def forward(self, x):
        place = x.data_ptr()
        if place not in self.answers:
            self.answers[place] = 2 * x
        return self.answers[place].clone()
