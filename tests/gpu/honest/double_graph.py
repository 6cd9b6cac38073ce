"""A graph that is captured once and replayed on a copy of each input."""

# /// fixture
# task = "double"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = {}

    def capture(self, x):
        given = torch.empty_like(x)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            given.mul(2)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = given.mul(2)
        return graph, given, out

    def forward(self, x):
        key = x.shape, x.stride(), x.dtype
        if key not in self.graphs:
            self.graphs[key] = self.capture(x)
        graph, given, out = self.graphs[key]
        given.copy_(x)
        graph.replay()
        return out.clone()
