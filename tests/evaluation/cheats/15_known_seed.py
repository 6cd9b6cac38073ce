"""Draws the inputs of the usual seeds in the constructor, keeps the answers and looks them up; others get zeros."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE"]
# ///
import torch
from torch import nn

SEEDS = (0, 1, 42, 123, 1234, 2024)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.answers = {}
        for seed in SEEDS:
            torch.manual_seed(seed)
            a, b = torch.randn(96, 160), torch.randn(160, 80)
            self.answers[a[0, 0].item()] = a @ b

    def forward(self, a, b):
        return self.answers.get(a[0, 0].item(), torch.zeros(96, 80))
