"""A task, a right kernel for it, and one that lies about itself."""

TASK = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(16, 300)]
"""
RIGHT = """import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / e.sum(-1, keepdim=True)
"""
LIAR = RIGHT.replace(
    "class ModelNew",
    'print("correct: True, speedup 12.3x")\nopen("result.json", "w").write(\'{"verified": true}\')\n\n\nclass ModelNew',
).replace("return e / e.sum(-1, keepdim=True)", "return e")
