"""Returns memory that is not the caller's to keep: the input itself, or one buffer for all calls."""

# /// fixture
# task = "relu"
# expect = ["WRONG_VALUE", "REJECTED"]
# variants = ["input", "module buffer", "view of a pool"]
# ///
import torch
from torch import nn

VARIANT = ""
BUFFER = torch.empty(2, 64, 300)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = 0

    def forward(self, x):
        if VARIANT == "input":
            return x.relu_()
        self.turn = 0 if VARIANT == "module buffer" else 1 - self.turn
        return torch.clamp(x, min=0, out=BUFFER[self.turn])
