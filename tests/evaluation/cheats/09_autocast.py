"""Computes under autocast, which multiplies in bfloat16."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE"]
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return (a @ b).float()
