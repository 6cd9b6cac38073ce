"""Tensors that come from numbers and positions alone."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from egg.expert.ir import Scalar
from egg.expert.lower.build import Build, Lowering
from egg.expert.lower.dtypes import compute_dtype, sum_dtype
from egg.expert.lower.elements import Elements, cast, filled, op, positions


def _fill(value: Scalar) -> Lowering:
    return lambda b, *_, **__: filled(value, compute_dtype(b.dtype), b.shape)


def _full(b: Build, _: object, fill_value: Scalar, **__: object) -> Elements:
    return filled(fill_value, compute_dtype(b.dtype), b.shape)


def _new_full(b: Build, _: Elements, size: object, fill_value: Scalar, **__: object) -> Elements:
    return filled(fill_value, compute_dtype(b.dtype), b.shape)


def _scalar_tensor(b: Build, value: Scalar, **_: object) -> Elements:
    return filled(value, compute_dtype(b.dtype))


def _fill_with(b: Build, x: Elements, value: Scalar | Elements) -> Elements:
    if isinstance(value, Elements):
        return Elements(x.shape, value.dtype, lambda _: value.at(()))
    return filled(value, compute_dtype(b.dtype), b.shape)


def _arange(b: Build, *args: Scalar, start: Scalar = 0, end: Scalar = 0, step: Scalar = 1, **_: object) -> Elements:
    """aten.arange with (end), (start, end) or (start, end, step)."""
    if len(args) > 1:
        start = args[0]
    if len(args) > 2:
        step = args[2]
    if isinstance(start, int) and isinstance(step, int):
        first, stride = start, step
        return cast(positions(b.shape, lambda at: at[0] * stride + first), compute_dtype(b.dtype))
    place = cast(positions(b.shape, lambda at: at[0]), sum_dtype(b.dtype))
    return place * step + start


def _linspace(b: Build, start: float, end: float, steps: int, **_: object) -> Elements:
    """Counts from both ends, as PyTorch does, so that the last element is the end itself."""
    place = cast(positions(b.shape, lambda at: at[0]), compute_dtype(b.dtype))
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    return op("where", op("lt", place, steps // 2), place * step + start, end - (steps - 1 - place) * step)


def _eye(b: Build, *_: object, **__: object) -> Elements:
    row, column = (positions(b.shape, lambda at, d=d: at[d]) for d in (0, 1))
    return cast(op("eq", row, column), compute_dtype(b.dtype))


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        **{f"aten.zeros{tail}.default": _fill(0) for tail in ("", "_like")},
        **{f"aten.ones{tail}.default": _fill(1) for tail in ("", "_like")},
        "aten.new_zeros.default": _fill(0),
        "aten.new_ones.default": _fill(1),
        "aten.full.default": _full,
        "aten.full_like.default": _full,
        "aten.new_full.default": _new_full,
        "aten.fill.Scalar": _fill_with,
        "aten.fill.Tensor": _fill_with,
        "aten.scalar_tensor.default": _scalar_tensor,
        "aten.arange.default": _arange,
        "aten.arange.start": _arange,
        "aten.arange.start_step": _arange,
        "aten.linspace.default": _linspace,
        "aten.eye.default": _eye,
        "aten.eye.m": _eye,
    }
)
"""By overload name."""
