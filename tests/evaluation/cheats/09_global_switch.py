"""Turns a global switch of PyTorch, so that arithmetic is cheaper here or the reference runs otherwise."""

# /// fixture
# task = "matmul"
# expect = ["PASSED", "WRONG_VALUE", "REJECTED"]
# says = "global setting"
# variants = ["matmul precision", "flush denormal", "default dtype", "deterministic"]
# ///
import torch
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def forward(self, a, b):
        if VARIANT == "matmul precision":
            torch.set_float32_matmul_precision("high")
        elif VARIANT == "flush denormal":
            torch.set_flush_denormal(True)
        elif VARIANT == "default dtype":
            torch.set_default_dtype(torch.float64)
        else:
            torch.use_deterministic_algorithms(True)
        return a @ b
