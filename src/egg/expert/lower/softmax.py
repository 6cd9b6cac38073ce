"""Softmax and its kin: the maximum is taken out before the exponential, so nothing overflows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from egg.expert.lower.build import Build, Lowering, Unsupported
from egg.expert.lower.elements import Elements, cast, computed, op, reshape
from egg.expert.lower.pointwise import operand
from egg.expert.lower.reductions import Dims, dims_of


def shifted(b: Build, x: Elements, dims: Sequence[int]) -> tuple[Elements, Elements]:
    """Returns x minus its maximum over `dims`, and the sum of its exponentials, which kept the dimensions."""
    if not dims:
        return x - x, op("exp", x - x)
    away = x - b.reduce("max", x, dims, "max", True)
    return away, b.reduce("sum", op("exp", away), dims, "sum", True)


def log_softmax(b: Build, x: Elements, dim: int) -> Elements:
    """Returns x - max - log(sum(exp(x - max))) over `dim`, with the logarithm defined under its own name."""
    away, total = shifted(b, x, dims_of(x, dim))
    return away - b.let("log_sum", op("log", total))


def softmax(b: Build, x: Elements, dim: int) -> Elements:
    """Returns exp(x - max) / sum(exp(x - max)) over `dim`."""
    away, total = shifted(b, x, dims_of(x, dim))
    return op("exp", away) / total


def _input(b: Build, x: Elements, dtype: str | None) -> Elements:
    return computed(cast(x, dtype)) if dtype is not None else operand(x, b.dtype)


def _softmax(b: Build, x: Elements, dim: int, dtype: str | None = None) -> Elements:
    return softmax(b, _input(b, x, dtype), dim)


def _inner_softmax(b: Build, x: Elements, dim: int, half_to_float: bool) -> Elements:
    return softmax(b, computed(x), dim)


def _log_softmax(b: Build, x: Elements, dim: int, dtype: str | None = None) -> Elements:
    return log_softmax(b, _input(b, x, dtype), dim)


def _inner_log_softmax(b: Build, x: Elements, dim: int, half_to_float: bool) -> Elements:
    return log_softmax(b, computed(x), dim)


def _safe_softmax(b: Build, x: Elements, dim: int, dtype: str | None = None) -> Elements:
    """Rows of -inf alone give zeros instead of NaN."""
    v = _input(b, x, dtype)
    dims = dims_of(v, dim)
    if not dims:
        raise Unsupported("a safe softmax of one number")
    top = b.reduce("max", v, dims, "max", True)
    shift = b.let("shift", op("where", op("eq", top, -float("inf")), 0, top))
    total = b.reduce("sum", op("exp", v - shift), dims, "sum", True)
    return op("exp", v - shift) / op("where", op("eq", total, 0), 1, total)


def logsumexp(b: Build, x: Elements, dims: Sequence[int], keepdim: bool) -> Elements:
    """Returns log(sum(exp(x))) over `dims`; an infinite maximum is not taken out, as that would give NaN."""
    if not dims:
        return x
    top = b.reduce("max", x, dims, "max", True)
    shift = b.let("shift", op("where", op("isinf", top), 0, top))
    total = b.reduce("sum", op("exp", x - shift), dims, "sum", keepdim)
    return op("log", total) + (shift if keepdim else reshape(shift, total.shape))


def _logsumexp(b: Build, x: Elements, dim: Dims, keepdim: bool = False) -> Elements:
    if not x.numel:
        raise Unsupported("the logsumexp of an empty tensor")
    return logsumexp(b, operand(x, b.dtype), dims_of(x, dim), keepdim)


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "aten.softmax.int": _softmax,
        "aten._softmax.default": _inner_softmax,
        "aten._safe_softmax.default": _safe_softmax,
        "aten.log_softmax.int": _log_softmax,
        "aten._log_softmax.default": _inner_log_softmax,
        "aten.special_softmax.int": _softmax,
        "aten.special_log_softmax.int": _log_softmax,
        "aten.logsumexp.default": _logsumexp,
        "aten.special_logsumexp.default": _logsumexp,
    }
)
"""By overload name."""
