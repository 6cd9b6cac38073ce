"""The compiled functions that a candidate calls: found where it keeps them, and held by the hand for a call or two."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter_ns  # bound now, before a candidate could replace it
from types import ModuleType
from typing import Any

import torch
from torch import nn

from egg.evaluation.tensors import map_tensors, same_bytes, storage_of, walk

_DEEPEST = 6
_GARBAGE = 12345.678
"""Finite, so that a result that is multiplied by zero does not show it."""


class InjectedFault(Exception):
    """Stands for a kernel that could not be launched."""


@dataclass
class Native:
    """One compiled function, with what was seen of its calls."""

    name: str
    holders: list[tuple[dict[Any, Any], Any]]
    """Each dictionary that holds it, with the key."""
    function: Any
    calls: int = 0
    spent_ns: int = 0

    def timed(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it and counts its time."""
        started = perf_counter_ns()
        try:
            return self.function(*args, **kwargs)
        finally:
            self.spent_ns += perf_counter_ns() - started
            self.calls += 1

    def failing(self, *args: Any, **kwargs: Any) -> Any:
        """Raises, as a launch does that the device refuses."""
        raise InjectedFault(self.name)

    def poisoned(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it and writes garbage over everything that it wrote or returns."""
        given = [leaf for _, leaf in walk([args, kwargs], "given") if isinstance(leaf, torch.Tensor)]
        before = [tensor.clone() for tensor in given]
        result = self.function(*args, **kwargs)
        for tensor, old in zip(given, before, strict=True):
            if not same_bytes(tensor, old):
                _spoil(tensor)
        return map_tensors(result, _spoil)


def _spoil(tensor: torch.Tensor) -> torch.Tensor:
    storage = storage_of(tensor)
    storage.fill_(True if tensor.dtype is torch.bool else _GARBAGE)
    return tensor


@contextmanager
def replaced(native: Native, stand_in: Callable[..., Any]) -> Generator[None]:
    """Puts `stand_in` wherever the candidate keeps a compiled function."""
    for holder, key in native.holders:
        holder[key] = stand_in
    try:
        yield
    finally:
        for holder, key in native.holders:
            holder[key] = native.function


def find_natives(module: ModuleType, model: nn.Module) -> list[Native]:
    """Returns the compiled functions that the candidate's file or model holds, as far as they can be reached."""
    return list(_Search().run(vars(module), vars(model)).values())


@dataclass
class _Search:
    found: dict[int, Native] = field(default_factory=dict[int, Native])
    seen: set[int] = field(default_factory=set[int])

    def run(self, *roots: dict[Any, Any]) -> dict[int, Native]:
        for root in roots:
            self._visit(root, 0)
        return self.found

    def _visit(self, holder: dict[Any, Any], depth: int) -> None:
        if id(holder) in self.seen or depth > _DEEPEST:
            return
        self.seen.add(id(holder))
        for key, value in list(holder.items()):
            if _is_native(value):
                native = self.found.setdefault(id(value), Native(str(key), [], value))
                native.holders.append((holder, key))
            else:
                for inner in _inner(value):
                    self._visit(inner, depth + 1)


def _inner(value: Any) -> Iterator[dict[Any, Any]]:
    """Yields the dictionaries inside a value that may hold compiled functions."""
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list | tuple):
        yield from (inner for item in value for inner in _inner(item))
    elif isinstance(value, ModuleType):
        if _is_built(value):
            yield vars(value)
    elif isinstance(value, nn.Module) or type(value).__module__.startswith(("tvm_ffi", "ctypes", "candidate_")):
        yield vars(value) if hasattr(value, "__dict__") else {}


def _is_native(value: Any) -> bool:
    kind = type(value)
    if kind.__module__.startswith("tvm_ffi") and kind.__name__ == "Function":
        return True
    if any(base.__name__ == "_CFuncPtr" or base.__name__ == "CFuncPtr" for base in kind.__mro__):
        return not isinstance(value, type)
    owner = getattr(value, "__self__", None)
    return kind.__name__ == "builtin_function_or_method" and isinstance(owner, ModuleType) and _is_built(owner)


def _is_built(module: ModuleType) -> bool:
    """Returns whether a module is a library that was compiled in this worker's folder of builds."""
    builds = os.path.dirname(os.environ.get("TORCH_EXTENSIONS_DIR", "")) or "\0"
    return str(getattr(module, "__file__", "") or "").startswith(builds)
