"""The shape that each answer of a candidate worker must have: it is the claim of a process that runs foreign code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

Shape = Callable[[Any], bool]

_DEEPEST = 40
"""Levels of a structure of tensors."""
_LONGEST_TEXT = 4096
_MOST = 1 << 20
"""Items of a list or a mapping."""
_LARGEST = 2**63 - 1


class Unfit(Exception):
    """An answer has not the shape that is due."""


def is_text(value: Any) -> bool:
    """Returns whether it is a text that can be stored: not too long, and no half of a character."""
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT and not any("\ud800" <= c <= "\udfff" for c in value)


def is_count(value: Any) -> bool:
    """Returns whether it is a whole number from zero on, of 63 bits."""
    return type(value) is int and 0 <= value <= _LARGEST


def is_number(value: Any) -> bool:
    """Returns whether it is a finite number that is not negative."""
    return is_count(value) or (type(value) is float and isfinite(value) and value >= 0)


def is_flag(value: Any) -> bool:
    """Returns whether it is true or false."""
    return type(value) is bool


def maybe(item: Shape) -> Shape:
    """Returns the shape of `item` or nothing."""
    return lambda value: value is None or item(value)


def lists(item: Shape) -> Shape:
    """Returns the shape of a list of `item`."""
    return lambda value: isinstance(value, list) and len(value) <= _MOST and all(map(item, value))


def mappings(item: Shape) -> Shape:
    """Returns the shape of a mapping from names to `item`."""

    def fits(value: Any) -> bool:
        return isinstance(value, dict) and len(value) <= _MOST and all(is_text(k) and item(v) for k, v in value.items())

    return fits


def is_tree(value: Any, depth: int = 0) -> bool:
    """Returns whether it is the JSON of a structure that a candidate may send: tensors and plain data, no pickles."""
    if not isinstance(value, dict) or len(value) != 1 or depth > _DEEPEST:
        return False
    ((kind, body),) = value.items()
    match kind:
        case "tensor":
            return _is_tensor(body)
        case "float":
            return is_text(body)
        case "value":
            return body is None or type(body) in (bool, int) or is_text(body)
        case "list" | "tuple":
            return isinstance(body, list) and all(is_tree(item, depth + 1) for item in body)
        case "dict":
            return isinstance(body, list) and all(
                isinstance(pair, list) and len(pair) == 2 and all(is_tree(item, depth + 1) for item in pair)
                for pair in body
            )
        case _:
            return False


def _is_tensor(body: Any) -> bool:
    return (
        isinstance(body, dict)
        and (is_text(body.get("file")) or (is_text(body.get("shared")) and is_count(body.get("bytes"))))
        and is_text(body.get("dtype"))
        and lists(is_count)(body.get("shape"))
        and lists(is_count)(body.get("stride"))
    )


def _is_record(value: Any) -> bool:
    plain = (is_text, is_number, is_flag)
    return isinstance(value, dict) and all(is_text(k) and any(fits(v) for fits in plain) for k, v in value.items())


_CHANGED = mappings(is_tree)

_FIELDS: Mapping[str, Shape] = {
    "settings_changed": lists(is_text), "output": is_tree, "inputs": _CHANGED, "state": _CHANGED,
    "gradients": _CHANGED, "kept": lists(is_tree), "sampled": is_tree, "whole": is_tree, "typical_s": is_number,
    "cycle_s": is_number, "output_bytes": is_count, "calls": is_count, "times_ns": lists(is_count),
    "block_ns": is_count, "host_ns": lists(is_count), "event_ns": lists(maybe(is_count)), "stable": is_flag,
    "chained": is_flag, "varieties": is_count, "sightings": lists(is_text), "metrics": mappings(is_number),
    "kernels": lists(_is_record), "findings": lists(is_text), "flags": mappings(is_text),
}  # fmt: skip
"""By name, the fields that answers may have."""

_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "call": ("settings_changed",),
    "send": ("output", "inputs", "state"),
    "send_kept": ("kept",),
    "block": ("host_ns",),
    "settle": ("flags",),
    "inspect": ("sightings",),
    "profile": ("metrics", "kernels", "findings"),
}
"""By operation, the fields that its answer must have."""


def check(op: str, answer: Mapping[str, Any]) -> None:
    """Raises Unfit where an answer lacks a field, or a field is not what it has to be."""
    for name in _REQUIRED.get(op, ()):
        if name not in answer:
            raise Unfit(f"the answer to {op} has no {name}")
    for name, value in answer.items():
        fits = _FIELDS.get(name)
        if not is_text(name) or (fits is not None and not fits(value)):
            raise Unfit(f"the answer to {op} has no fit {name[:40]!a}")
