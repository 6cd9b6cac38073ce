"""Raw inputs, as task files return them, turned into the arguments of a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""


@dataclass(frozen=True)
class ExactCall:
    """Arguments that need no interpretation."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def forward_call(raw: object, forward: Callable[..., Any]) -> Call:
    """Returns the arguments of `forward` from what an input maker returned.

    A list, tuple or generator gives the positional arguments; a dict gives keywords where they fit the signature;
    anything else is the one positional argument. `[args, kwargs]` is taken apart only where it does not fit as it is.
    Raises TypeError, in the words of the signature, where nothing fits.
    """
    if isinstance(raw, ExactCall):
        inspect.signature(forward).bind(*raw.args, **raw.kwargs)
        return raw.args, raw.kwargs
    if _is_keywords(raw) and fits(forward, (), raw):
        return (), dict(raw)
    args = _positional(raw)
    if _is_split(args) and not fits(forward, args, {}) and fits(forward, tuple(args[0]), args[1]):
        return tuple(args[0]), dict(args[1])
    inspect.signature(forward).bind(*args)
    return args, {}


def init_call(raw: object, constructor: Callable[..., Any]) -> Call:
    """Returns the arguments of a constructor from what `get_init_inputs` returned.

    As `forward_call`, but `[args, kwargs]` is taken apart wherever that fits, because that is what such files mean.
    Raises TypeError where nothing fits.
    """
    if _is_keywords(raw) and fits(constructor, (), raw):
        return (), dict(raw)
    args = _positional(raw)
    if _is_split(args) and fits(constructor, tuple(args[0]), args[1]):
        return tuple(args[0]), dict(args[1])
    inspect.signature(constructor).bind(*args)
    return args, {}


def fits(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Returns whether the arguments fit the signature, defaults included."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _positional(raw: object) -> tuple[Any, ...]:
    if raw is None:
        return ()
    if isinstance(raw, tuple) and hasattr(raw, "_fields"):  # a named tuple is one structured argument
        return (raw,)
    if isinstance(raw, list | tuple | Iterator):
        return tuple(raw)
    return (raw,)


def _is_keywords(raw: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(raw, dict) and all(isinstance(key, str) for key in raw)


def _is_split(args: tuple[Any, ...]) -> bool:
    return len(args) == 2 and isinstance(args[0], list | tuple) and _is_keywords(args[1])
