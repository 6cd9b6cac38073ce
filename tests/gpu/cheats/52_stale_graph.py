"""Replays a graph on the first input that it saw."""

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
        self.graph.replay()
        return self.out.clone()
