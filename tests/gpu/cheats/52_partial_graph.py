"""Copies only half of the input to where its graph reads."""

# /// fixture
# task = "double"
# expect = ["WRONG_VALUE", "REJECTED"]
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.given = x.clone()
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = 2 * self.given
        self.given[: len(x) // 2].copy_(x[: len(x) // 2])
        self.graph.replay()
        return self.out.clone()
