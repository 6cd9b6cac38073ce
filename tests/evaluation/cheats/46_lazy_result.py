"""Returns an object that computes when it is read, so that the timed call does nothing."""

# /// fixture
# task = "double"
# expect = ["REJECTED"]
# variants = ["subclass", "class swapped", "instance method"]
# ///
import torch
from torch import nn

VARIANT = ""


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        plain = [a.as_subclass(torch.Tensor) * 2 if isinstance(a, Lazy) else a for a in args]
        return function(*plain, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, x):
        if VARIANT == "subclass":
            return x.clone().as_subclass(Lazy)
        out = x.clone()
        if VARIANT == "class swapped":
            out.__class__ = Lazy
        else:
            out.detach = out.clone = out.contiguous = lambda *_: out.mul_(2)
        return out
