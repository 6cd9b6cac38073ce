"""EGG turns a PyTorch module into faster kernels that are proved right, measured honestly and explained."""

from __future__ import annotations

__version__ = "0.1.0"
