"""Expressions with constants folded and operators that change nothing left out."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from egg.expert.ir import Apply, Bound, Cast, Constant, Expr, Guard, Load, Position, Scalar

_FLOATS = ("float16", "bfloat16", "float32", "float64")

_EXACT: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "abs": abs,
        "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
        "ge": operator.ge, "logical_and": lambda a, b: a and b, "logical_or": lambda a, b: a or b,
        "logical_xor": operator.ne, "logical_not": operator.not_, "isnan": math.isnan, "isinf": math.isinf,
        "isfinite": math.isfinite,
    }
)  # fmt: skip
"""What Python computes as the operator does, for any finite arguments."""

_ROUNDED: Mapping[str, Callable[..., float]] = MappingProxyType(
    {"div": operator.truediv, "sqrt": math.sqrt, "rsqrt": lambda a: 1 / math.sqrt(a), "reciprocal": lambda a: 1 / a,
     "exp": math.exp, "log": math.log}
)  # fmt: skip
"""Floating functions, folded in double precision."""


def folded(expr: Expr) -> Expr:
    """Returns an equal expression; literals are combined in double precision, everything else is exact."""
    match expr:
        case Cast(arg=arg, dtype=dtype):
            return _cast(folded(arg), dtype)
        case Apply(args=args):
            return _apply(replace(expr, args=tuple(map(folded, args))))
        case Guard(bounds=bounds, body=body, other=other):
            return _guard(bounds, folded(body), folded(other))
        case Position(index=index, dtype=dtype) if (known := index.as_constant()) is not None:
            return Constant(known, dtype)
        case Load() | Constant() | Position():
            return expr


def _cast(arg: Expr, dtype: str) -> Expr:
    if arg.dtype == dtype:
        return arg
    if isinstance(arg, Constant):
        if dtype in ("float32", "float64") and arg.dtype not in ("float16", "bfloat16"):
            return Constant(float(arg.value), dtype)
        if dtype == "int64" and arg.dtype not in _FLOATS:
            return Constant(int(arg.value), dtype)
    if isinstance(arg, Cast) and arg.dtype in ("float32", "float64") and arg.arg.dtype in ("float16", "bfloat16"):
        return _cast(arg.arg, dtype) if dtype in _FLOATS else Cast(arg, dtype)
    return Cast(arg, dtype)


def _apply(expr: Apply) -> Expr:
    literals = [a.value for a in expr.args if isinstance(a, Constant)]
    if len(literals) == len(expr.args):
        value = _evaluated(expr.op, literals)
        return expr if value is None else _literal(value, expr.dtype)
    match expr:
        case Apply(op="where", args=(Constant(value=chosen), yes, no)):
            return yes if chosen else no
        case Apply(op="where", args=(_, yes, no)) if yes == no:
            return yes
        case Apply(op="mul", args=(Constant(value=1), other)) | Apply(op="mul", args=(other, Constant(value=1))):
            return other
        case Apply(op="div", args=(other, Constant(value=1))):
            return other
        case Apply(op="sub", args=(other, Constant(value=0))):
            return other
        case Apply(op="div", args=(other, Constant(value=value))) if _power_of_two(value):
            return replace(expr, op="mul", args=(other, Constant(1 / value, expr.dtype)))
        case Apply(op="neg", args=(Apply(op="neg", args=(other,)),)):
            return other
        case _:
            return expr


def _guard(bounds: tuple[Bound, ...], body: Expr, other: Expr) -> Expr:
    kept: list[Bound] = []
    for bound in bounds:
        low, high = bound.index.bounds()
        if bound.low >= bound.high or high < bound.low or low >= bound.high:
            return other
        if low < bound.low or high >= bound.high:
            kept.append(bound)
    return Guard(tuple(kept), body, other, body.dtype) if kept and body != other else body


def _evaluated(op: str, values: list[Scalar]) -> Scalar | None:
    """Returns the operator's value, or None where Python's would differ."""
    if op == "where":
        return values[1] if values[0] else values[2]
    function = _EXACT.get(op) or _ROUNDED.get(op)
    if function is None or not all(math.isfinite(v) for v in values):
        return None
    try:
        return function(*values)
    except (ArithmeticError, ValueError):
        return None


def _literal(value: Scalar, dtype: str) -> Constant:
    if dtype in _FLOATS:
        return Constant(float(value), dtype)
    return Constant(bool(value) if dtype == "bool" else int(value), dtype)


def _power_of_two(value: Scalar) -> bool:
    return value != 0 and math.isfinite(value) and abs(math.frexp(value)[0]) == 0.5 and 2**-60 < abs(value) < 2**60
