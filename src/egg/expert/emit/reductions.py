"""How each kind of reduction and scan is spelled in C++, and in which type it accumulates."""

from __future__ import annotations

from dataclasses import dataclass

from egg.expert.emit.dtypes import FLOATING, HALF, held_type
from egg.expert.ir import ReduceKind, ScanKind

FLOAT_STEPS = 128
"""Sums of floats that one float accumulator may take before it is added into a double: its error stays a few ulp, also
where many values are equal (a ReLU leaves zeros), so that each addition rounds the same way."""


ONLINE_BLOCK = 32
"""Points of each lane that a `sumexp` takes in at a time: they fit the first cache, and the sum is rarely scaled."""


@dataclass(frozen=True)
class Combination:
    """An associative combination: its start, one step, and the end over the lanes of a block."""

    dtype: str
    """Of the accumulator."""
    start: str
    step: str
    """A statement with `{to}` and `{value}`."""
    lanes: str
    """The function that combines an array of lanes."""


def accumulator_dtype(kind: ReduceKind | ScanKind, dtype: str, wide: bool) -> str:
    """Returns the dtype that accumulates values of `dtype`; `wide` asks for double where errors add up."""
    if kind in ("any", "all"):
        return "bool"
    if dtype in HALF:
        dtype = "float32"
    grows = kind in ("sum", "logsumexp", "sumexp")
    return "float64" if wide and grows and dtype == "float32" else dtype


def combination(kind: ReduceKind | ScanKind, dtype: str) -> Combination:
    """Returns how values are combined into an accumulator of `dtype`. Raises ValueError for what keeps two numbers."""
    ctype = held_type(dtype)
    match kind:
        case "sum":
            return Combination(dtype, f"{ctype}(0)", "{to} += {value};", "egg::lanes_sum")
        case "prod":
            return Combination(dtype, f"{ctype}(1)", "{to} *= {value};", "egg::lanes_product")
        case "max":
            return Combination(dtype, _lowest(dtype), "{to} = egg::maximum({to}, {value});", "egg::lanes_maximum")
        case "min":
            return Combination(dtype, _highest(dtype), "{to} = egg::minimum({to}, {value});", "egg::lanes_minimum")
        case "any":
            return Combination(dtype, "false", "{to} = {to} | {value};", "egg::lanes_any")
        case "all":
            return Combination(dtype, "true", "{to} = {to} & {value};", "egg::lanes_all")
        case "logsumexp":
            return Combination(dtype, _lowest(dtype), "{to} = egg::log_add_exp({to}, {value});", "egg::lanes_sum")
        case _:
            raise ValueError(f"{kind} is not a combination of single values; it keeps two numbers")


def extreme_start(kind: ReduceKind, dtype: str) -> str:
    """Returns the start of the extreme value that argmax, argmin and sumexp keep."""
    return _highest(dtype) if kind == "argmin" else _lowest(dtype)


def _lowest(dtype: str) -> str:
    return {"float64": "(-__builtin_inf())", "float32": "(-__builtin_inff())"}.get(dtype) or _integer_end(dtype, "MIN")


def _highest(dtype: str) -> str:
    return {"float64": "__builtin_inf()", "float32": "__builtin_inff()"}.get(dtype) or _integer_end(dtype, "MAX")


def _integer_end(dtype: str, end: str) -> str:
    if dtype in FLOATING:
        raise ValueError(f"{dtype} is not a dtype that accumulates")
    if dtype == "bool":
        return "false" if end == "MIN" else "true"
    if dtype == "uint8":
        return "uint8_t(0)" if end == "MIN" else "UINT8_MAX"
    return f"{dtype.upper()}_{end}"
