"""Holds the sizes of one workload as literals; at another size it fails or skips work."""

# /// fixture
# task = "two_sizes"
# expect = ["RUNTIME_ERROR", "WRONG_SHAPE", "WRONG_VALUE"]
# variants = ["view", "loop"]
# ///
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def forward(self, x):
        if VARIANT == "view":
            return x.view(32, 128).cumsum(1)
        out = x.clone()
        for start in range(0, 128, 64):
            out[:, start : start + 64] = x[:, : start + 64].cumsum(1)[:, start:]
        return out
