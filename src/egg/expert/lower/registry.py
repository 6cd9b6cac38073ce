"""Which lowering an operator has."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from egg.expert.lower import (
    activations,
    creation,
    indexing,
    linear,
    losses,
    norms,
    pointwise,
    pooling,
    reductions,
    scans,
    selection,
    softmax,
    views,
)
from egg.expert.lower.build import Lowering

LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        **pointwise.LOWERINGS,
        **activations.LOWERINGS,
        **views.LOWERINGS,
        **selection.LOWERINGS,
        **creation.LOWERINGS,
        **indexing.LOWERINGS,
        **reductions.LOWERINGS,
        **softmax.LOWERINGS,
        **norms.LOWERINGS,
        **pooling.LOWERINGS,
        **scans.LOWERINGS,
        **losses.LOWERINGS,
    }
)
"""Every lowering by overload name."""

ANCHORS = linear.ANCHORS
"""Operators that stay whole because vendor libraries do them well."""
