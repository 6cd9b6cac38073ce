"""Prefix combinations along one dimension."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from egg.expert.ir import ScanKind
from egg.expert.lower.build import Build, Lowering
from egg.expert.lower.dtypes import sum_dtype
from egg.expert.lower.elements import Elements, cast


def _scan(kind: ScanKind) -> Lowering:
    def lowering(b: Build, x: Elements, dim: int, *, dtype: str | None = None) -> Elements:
        v = cast(x, sum_dtype(b.dtype))
        return b.scan(kind, v, dim % v.rank, 0) if v.rank else v

    return lowering


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "aten.cumsum.default": _scan("sum"),
        "aten.cumprod.default": _scan("prod"),
        "aten.logcumsumexp.default": _scan("logsumexp"),
    }
)
"""By overload name."""
