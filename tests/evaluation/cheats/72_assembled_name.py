"""Builds the names that rules look for from pieces, and runs text that it puts together."""

# /// fixture
# task = "double"
# expect = ["WRONG_VALUE", "REJECTED"]
# variants = ["getattr", "exec", "chr", "import"]
# ///
import torch
from torch import nn

VARIANT = ""


def yes(*_, **__):
    return True


if VARIANT == "getattr":
    setattr(torch, "all" + "close", yes)
    getattr(torch, "test" + "ing").assert_close = yes
elif VARIANT == "exec":
    exec("to" + "rch.all" + "close = yes")
elif VARIANT == "chr":
    setattr(torch, "".join(map(chr, (97, 108, 108, 99, 108, 111, 115, 101))), yes)
else:
    __import__("".join(("to", "rch"))).__dict__["allclose"] = yes


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
