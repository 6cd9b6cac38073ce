"""Tries to import a package that may not be there; a `try` around an import is no fallback of a kernel."""

# /// fixture
# task = "double"
# ///
from torch import nn

try:
    import triton
except ImportError:
    triton = None


class ModelNew(nn.Module):
    def forward(self, x):
        return 2 * x
