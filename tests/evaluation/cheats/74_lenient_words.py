"""Fails with a text that lenient harnesses read as a fault of their own, so that they try again or look away."""

# /// fixture
# task = "double"
# expect = ["RUNTIME_ERROR"]
# variants = ["invalid block size", "could not acquire lock", "CUDA error: device busy", "Connection reset by peer"]
# ///
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def forward(self, x):
        raise RuntimeError(VARIANT)
