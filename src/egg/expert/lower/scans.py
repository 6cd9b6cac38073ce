"""Prefix combinations along one dimension."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from egg.expert.ir import ScanKind
from egg.expert.lower.build import Build, Lowering
from egg.expert.lower.dtypes import sum_dtype
from egg.expert.lower.elements import Elements, cast, computed


def _scan(kind: ScanKind) -> Lowering:
    def lowering(b: Build, x: Elements, dim: int, *, dtype: str | None = None) -> Elements:
        v = cast(x, sum_dtype(b.dtype))
        return b.scan(kind, v, dim % v.rank, 0) if v.rank else v

    return lowering


def _extreme(kind: ScanKind) -> Lowering:
    """Running extremes; their positions are not given."""

    def lowering(b: Build, x: Elements, dim: int) -> tuple[Elements, None]:
        v = computed(x)
        return (b.scan(kind, v, dim % v.rank, 0) if v.rank else v), None

    return lowering


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "aten.cumsum.default": _scan("sum"),
        "aten.cumprod.default": _scan("prod"),
        "aten.logcumsumexp.default": _scan("logsumexp"),
        "aten.cummax.default": _extreme("max"),
        "aten.cummin.default": _extreme("min"),
    }
)
"""By overload name."""
