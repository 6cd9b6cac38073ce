"""Returns one value a row, which broadcasts against the whole."""

# /// fixture
# task = "row_mean"
# expect = ["WRONG_SHAPE"]
# variants = ["kept dimension", "scalar"]
# ///
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def forward(self, x):
        return x.mean(1, keepdim=True) if VARIANT == "kept dimension" else x.mean()
