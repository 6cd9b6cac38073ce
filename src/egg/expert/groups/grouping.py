"""The structure decisions of a layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Grouping:
    """What shares a kernel, and which loops a kernel has."""

    level: Literal["pointwise", "rows"] = "rows"
    """`pointwise`: plain definitions go into each other and into their reduction, and every reduction has a kernel of
    its own. `rows`: whatever can share rows shares a kernel."""
    loops: frozenset[str] = frozenset()
    """Names of library nodes that become loops."""
    vector: Literal["auto", "inner", "columns"] = "auto"
    """Along which kind of loop a kernel vectorises; what is impossible falls back to the other."""
    mapping: Literal["auto", "rows", "inner"] = "auto"
    """What runs in parallel."""
    online: bool = False
    """Whether a softmax finds its sum of exponentials in the same pass as the maximum that they are relative to."""
    in_place: Literal["auto", "never"] = "auto"
    """Whether a kernel writes over a library result that nothing else reads."""
    keep: Literal["auto", "keep", "recompute"] = "auto"
    """What becomes of a plain definition that two stages of a row read: kept in row scratch or evaluated again."""
