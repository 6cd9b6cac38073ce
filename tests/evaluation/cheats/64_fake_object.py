"""Returns something that only looks like the tensor that is wanted."""

# /// fixture
# task = "double"
# expect = ["REJECTED", "WRONG_DTYPE", "WRONG_SHAPE"]
# variants = ["object", "parameter", "numpy", "list", "tuple", "string"]
# only.object = { bypass = "fake object" }
# ///
import torch
from torch import nn

VARIANT = ""


class Agreeable:
    def __init__(self, like):
        self.shape, self.dtype, self.device = like.shape, like.dtype, like.device

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True

    def __sub__(self, other):
        return torch.zeros(self.shape)

    def __eq__(self, other):
        return True

    __hash__ = None


class ModelNew(nn.Module):
    def forward(self, x):
        made = {
            "object": lambda: Agreeable(x),
            "parameter": lambda: nn.Parameter(x * 2),
            "numpy": lambda: (x * 2).numpy(),
            "list": lambda: (x * 2).tolist(),
            "tuple": lambda: (x * 2,),
            "string": lambda: str(x * 2),
        }
        return made[VARIANT]()
