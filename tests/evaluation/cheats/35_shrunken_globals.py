"""Sets the size that the reference's input maker reads from the names they share, so that both work on little."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_SHAPE"]
# bypass = "shrunken globals"
# ///
import builtins

from torch import nn

N = M = K = batch_size = 4
builtins.N = builtins.M = builtins.K = 4


def get_inputs():
    import torch

    return [torch.randn(4, 4), torch.randn(4, 4)]


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a[:N, :K] @ b[:K, :M]
