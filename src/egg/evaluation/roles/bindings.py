"""The clocks, comparisons and summaries of the process, held from before the candidate came."""

from __future__ import annotations

import builtins
import json
import statistics
import time
from typing import Any

import torch

_WATCHED: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("time", time, ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns", "sleep")),
    ("statistics", statistics, ("mean", "median", "quantiles")),
    ("json", json, ("dumps", "loads")),
    ("builtins", builtins, ("print", "sum", "min", "max", "sorted", "len", "abs", "all", "any")),
    ("torch", torch, ("allclose", "isclose", "equal")),
    ("torch.testing", torch.testing, ("assert_close",)),
    ("torch.Tensor", torch.Tensor, ("allclose", "isclose", "equal", "__eq__", "__ne__", "clone", "copy_", "detach")),
    ("torch.cuda", torch.cuda, ("synchronize", "Event", "current_stream")),
    ("torch.cuda.Event", torch.cuda.Event, ("record", "elapsed_time", "synchronize")),
)


class Bindings:
    """What the watched names stood for at first. Nothing of the house rests on them: a change shows an intention."""

    def __init__(self) -> None:
        self._held = {f"{name}.{key}": getattr(owner, key) for name, owner, keys in _WATCHED for key in keys}

    def replaced(self) -> list[str]:
        """Returns the names that stand for something else now."""
        now = {f"{name}.{key}": getattr(owner, key, None) for name, owner, keys in _WATCHED for key in keys}
        return [name for name, value in now.items() if value is not self._held[name]]
