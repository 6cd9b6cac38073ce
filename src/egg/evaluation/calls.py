"""One call under a known random state, and the settings that a call must leave alone."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of one call."""


def call_seeded(seed: int, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Returns the result of a call that starts with every random generator set from `seed`."""
    torch.manual_seed(seed)
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)
    return function(*args, **kwargs)


@contextmanager
def one_thread() -> Generator[None]:
    """Keeps PyTorch to one thread: for house work on small tensors, where waking threads costs more than they save."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def settings() -> dict[str, str]:
    """Returns PyTorch's global settings that change what or how fast it computes."""
    return {
        "default dtype": str(torch.get_default_dtype()),
        "threads": str(torch.get_num_threads()),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "autocast": str(torch.is_autocast_enabled("cpu")),
        "deterministic algorithms": str(torch.are_deterministic_algorithms_enabled()),
        "flush denormal": "on" if _flushes_denormals() else "off",
    }


def _flushes_denormals() -> bool:
    smallest = torch.tensor([1e-310], dtype=torch.float64)
    return bool((smallest * 1.0 == 0).item())
