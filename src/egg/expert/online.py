"""Maximum and sum of exponentials in one pass: sum(exp(x - max(x))) becomes one reduction, of kind `sumexp`.

The reduction keeps a running maximum and the sum of exponentials relative to it, and scales the sum when the maximum
grows (M. Milakov, N. Gimelshein: Online normalizer calculation for softmax, arXiv:1805.02867). It no longer waits for
the maximum, so both read the row in the same pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from egg.expert.index import Axis, axis_index
from egg.expert.ir import Apply, Constant, Define, Expr, Load, Reduce, Statement, inline, substitute

_EXACT = ("float32", "float64")


@dataclass(frozen=True)
class _Pair:
    """What a sum of exponentials is relative to."""

    body: Expr
    """x."""
    top: Load
    """max(x)."""
    unshifted: Expr | None
    """Where this holds of the maximum, zero was subtracted in its place."""


def online(statements: Sequence[Statement]) -> list[Statement]:
    """Returns equal statements in which no sum of exponentials waits for the maximum of the same values."""
    defines = {s.name: s for s in statements if isinstance(s, Define)}
    result: list[Statement] = []
    for statement in statements:
        pair = _pair_of(statement, defines) if isinstance(statement, Define) else None
        result += [statement] if pair is None or not isinstance(statement, Define) else _rewritten(statement, pair)
    return result


def _pair_of(define: Define, defines: Mapping[str, Define]) -> _Pair | None:
    how = define.how
    if not isinstance(how, Reduce) or how.kind != "sum":
        return None
    match _opened(define.body, defines):
        case Apply(op="exp", args=(away,)):
            away = _opened(away, defines)
        case _:
            return None
    if not isinstance(away, Apply) or away.op != "sub":
        return None
    body, shift = away.args
    match _opened(shift, defines):
        case Load() as top:
            unshifted = None
        case Apply(op="where", args=(unshifted, Constant(value=0), Load() as top)):
            if not _holds_of_infinity(unshifted, top):
                return None
        case _:
            return None
    maximum = defines.get(top.source)
    if maximum is None or not _is_maximum(maximum, top, body, how):
        return None
    return _Pair(body, top, unshifted)


def _opened(expr: Expr, defines: Mapping[str, Define]) -> Expr:
    """Returns what a read of a plain definition stands for, as far as nothing is rounded on the way."""
    while isinstance(expr, Load) and expr.source in defines:
        define = defines[expr.source]
        if define.how is not None or define.dtype not in _EXACT or define.body.dtype != define.dtype:
            break
        expr = inline(define, expr.at)
    return expr


def _holds_of_infinity(condition: Expr, top: Load) -> bool:
    """Returns whether a condition on the maximum can hold of infinite ones alone: then exp(top) is the whole sum."""
    match condition:
        case Apply(op="isinf", args=(arg,)):
            return arg == top
        case Apply(op="eq", args=(arg, Constant(value=value))):
            return arg == top and value == -float("inf")
        case _:
            return False


def _is_maximum(define: Define, top: Load, body: Expr, how: Reduce) -> bool:
    """Returns whether `top` reads the maximum of `body` over the axes of `how`."""
    own = define.how
    if not isinstance(own, Reduce) or own.kind != "max" or define.dtype not in _EXACT or body.dtype != define.dtype:
        return False
    if [a.extent for a in own.axes] != [a.extent for a in how.axes]:
        return False
    if any(axis in how.axes for index in top.at for axis in index.axes()):
        return False
    by = dict(zip(define.axes, top.at, strict=True)) | {
        old: axis_index(new) for old, new in zip(own.axes, how.axes, strict=True)
    }
    return substitute(define.body, by) == body


def _rewritten(define: Define, pair: _Pair) -> list[Statement]:
    """Returns the sum as one reduction; where zero stands in for an infinite maximum, the sum is exp(maximum)."""
    how = define.how
    assert isinstance(how, Reduce)
    if pair.unshifted is None:
        return [replace(define, body=pair.body, how=Reduce("sumexp", how.axes))]
    name, dtype = f"{define.name}_relative", pair.body.dtype
    own = {a: Axis(f"{a.name}_relative", a.extent) for a in (*define.axes, *how.axes)}
    relative = Define(
        name,
        tuple(own[a] for a in define.axes),
        dtype,
        substitute(pair.body, {old: axis_index(new) for old, new in own.items()}),
        Reduce("sumexp", tuple(own[a] for a in how.axes)),
        define.origin,
    )
    read = Load(name, tuple(map(axis_index, define.axes)), dtype)
    whole = Apply("where", (pair.unshifted, Apply("exp", (pair.top,), dtype), read), dtype)
    return [relative, replace(define, body=whole, how=None)]
