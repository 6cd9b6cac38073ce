"""The rungs of the baseline ladder by name: what turns the reference module into the function that is timed.

A rung is one function and one line in `RUNGS`. They import torch when they are called, in a worker, so that the
caller may read the names without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Transform = Callable[[Any], Callable[..., Any]]
"""Takes the reference module and returns what is called in its place."""


def eager(module: Any) -> Callable[..., Any]:
    """Returns the module as it is."""
    return module


def compiled(module: Any) -> Callable[..., Any]:
    """Returns the module under `torch.compile` in its default mode."""
    import torch

    return torch.compile(module)


def autotuned(module: Any) -> Callable[..., Any]:
    """Returns the module under `torch.compile` in its slowest mode, which tries kernels on the device."""
    import torch

    return torch.compile(module, mode="max-autotune-no-cudagraphs")


RUNGS: dict[str, Transform] = {
    "eager": eager,
    "torch.compile": compiled,
    "torch.compile max-autotune": autotuned,
}
