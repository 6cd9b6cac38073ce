"""Leaves of the arguments of `forward`, with the path of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree  # torch.export flattens with it, so the order of leaves agrees

from egg.schema.graph import TensorSpec
from egg.schema.task import InputLeaf

Path = tuple[str | int, ...]
"""Where a leaf sits in `(args, kwargs)`: `(0, "x")` is `args[0]["x"]`, `("mask",)` is a keyword."""

TEXT_LIMIT = 200
"""Characters of the `repr` of a leaf that is not a tensor."""


def flatten_leaves(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[Path, Any]]:
    """Returns each leaf with its path, positional arguments first; None and empty strings are leaves too."""
    found: list[tuple[Path, Any]] = []
    for head, value in (*enumerate(args), *kwargs.items()):
        for keys, leaf in pytree.tree_flatten_with_path(value)[0]:
            found.append(((head, *(_step(key) for key in keys)), leaf))
    return found


def map_leaves(change: Callable[[Any], Any], value: Any) -> Any:
    """Returns `value` with `change` applied to each leaf; containers keep their type and order.

    A leaf that occurs several times is changed once, so that what was one object stays one (`attention(x, x, x)`).
    """
    leaves, structure = pytree.tree_flatten(value)
    changed: dict[int, Any] = {}
    for leaf in leaves:
        if id(leaf) not in changed:
            changed[id(leaf)] = change(leaf)
    return pytree.tree_unflatten([changed[id(leaf)] for leaf in leaves], structure)


def path_text(path: Path) -> str:
    """Returns a path as Python would write it: `args[0]['x']`, `mask`."""
    head, *steps = path
    start = f"args[{head}]" if isinstance(head, int) else head
    return start + "".join(f"[{step!r}]" for step in steps)


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """Returns shape, dtype and, where it is not contiguous, strides of a tensor."""
    strided = tensor.layout is torch.strided and not tensor.is_contiguous()
    return TensorSpec(
        shape=tuple(int(n) for n in tensor.shape),
        dtype=dtype_name(tensor.dtype),
        stride=tuple(int(n) for n in tensor.stride()) if strided else (),
    )


def dtype_name(dtype: torch.dtype) -> str:
    """Returns the name of a dtype without its prefix: `float32`."""
    return str(dtype).removeprefix("torch.")


def input_leaves(leaves: Iterable[tuple[Path, Any]]) -> tuple[InputLeaf, ...]:
    """Returns the record of each leaf."""
    return tuple(_record(path, leaf) for path, leaf in leaves)


def _record(path: Path, leaf: Any) -> InputLeaf:
    if isinstance(leaf, torch.Tensor):
        return InputLeaf(path=path, kind="tensor", spec=spec_of(leaf))
    return InputLeaf(path=path, kind=type(leaf).__name__, text=repr(leaf)[:TEXT_LIMIT])


def _step(key: Any) -> str | int:
    """Returns one step of a path from a key of torch's pytree."""
    for attribute in ("idx", "key", "name"):
        if hasattr(key, attribute):
            value = getattr(key, attribute)
            return value if isinstance(value, int) else str(value)
    return str(key)
