"""The rungs of the baseline ladder by name: what turns the reference module into the function that is timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Transform = Callable[[nn.Module], Callable[..., Any]]


def _eager(module: nn.Module) -> Callable[..., Any]:
    return module


def _compiled(module: nn.Module) -> Callable[..., Any]:
    return torch.compile(module)


RUNGS: dict[str, Transform] = {
    "eager": _eager,
    "torch.compile": _compiled,
}
