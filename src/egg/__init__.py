"""EGG turns a PyTorch module into faster kernels that are proved right, measured honestly and explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from egg.api import Result, optimize, verify
    from egg.schema.verification import Verification

__all__ = ["Result", "Verification", "__version__", "optimize", "verify"]
__version__ = "0.1.0"

_LAZY = {
    "optimize": "egg.api",
    "verify": "egg.api",
    "Result": "egg.api",
    "Verification": "egg.schema.verification",
}


def __getattr__(name: str) -> object:
    """Imports the Python API on first use, so that `import egg` stays light."""
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'egg' has no attribute {name!r}")
