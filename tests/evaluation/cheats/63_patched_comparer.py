"""Returns zeros and makes every comparison say that they are right."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE", "REJECTED"]
# variants = ["allclose", "tensor", "testing", "numpy", "egg"]
# only.allclose = { bypass = "patched allclose" }
# ///
import sys

import torch
from torch import nn

VARIANT = ""


def yes(*_, **__):
    return True


if VARIANT == "allclose":
    torch.allclose = torch.isclose = torch.equal = yes
    torch.Tensor.allclose = torch.Tensor.equal = yes
elif VARIANT == "tensor":
    torch.Tensor.__eq__ = lambda self, other: torch.ones(self.shape, dtype=torch.bool)
    torch.Tensor.__ne__ = lambda self, other: torch.zeros(self.shape, dtype=torch.bool)
elif VARIANT == "testing":
    torch.testing.assert_close = yes
elif VARIANT == "numpy":
    import numpy

    numpy.allclose = numpy.array_equal = numpy.testing.assert_allclose = yes
else:
    for module in [m for name, m in sys.modules.items() if name.startswith("egg.evaluation")]:
        for name in list(vars(module)):
            if "same" in name or "mismatch" in name or "measure" in name or "untouched" in name:
                setattr(module, name, lambda *_, **__: None)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.zeros(a.shape[0], b.shape[1])
