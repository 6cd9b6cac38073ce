"""Normalises without weight and bias, or never loads them: a fresh layer holds ones and zeros, so they do nothing."""

# /// fixture
# task = "layer_norm"
# expect = ["WRONG_VALUE"]
# variants = ["no weights", "weights not loaded"]
# ///
from torch import nn
from torch.nn import functional as F

VARIANT = ""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(256)

    def load_state_dict(self, state, strict=True):
        if VARIANT == "no weights":
            return super().load_state_dict(state, strict=strict)
        return super().load_state_dict({}, strict=False)

    def forward(self, x):
        return self.norm(x) if VARIANT == "weights not loaded" else F.layer_norm(x, (256,))
