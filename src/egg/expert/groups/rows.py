"""Groups of definitions that share rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from egg.expert.groups.nests import Nest
from egg.expert.index import Axis
from egg.expert.ir import Scan
from egg.schema.graph import DTYPE_BYTES


@dataclass(frozen=True)
class Group:
    """Definitions that share one kernel."""

    nests: tuple[Nest, ...]
    """In topological order."""
    rows: tuple[Axis, ...]
    crossing: frozenset[str] = frozenset()
    """Reductions over the rows themselves, and the scalars computed from them after the last row."""

    @cached_property
    def inputs(self) -> frozenset[str]:
        """Names of what it reads from outside."""
        return frozenset(n for nest in self.nests for n in nest.sources) - self.names

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the values."""
        return frozenset(nest.name for nest in self.nests)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is reduced or scanned."""
        return all(nest.how is None for nest in self.nests)

    @property
    def points(self) -> int:
        """Evaluations of the largest definition."""
        return max(nest.points for nest in self.nests)

    def scratch_bytes(self) -> int:
        """Returns the bytes that one row hands from one definition to another, at most."""
        read = {load.source for nest in self.nests for load in nest.loads()}
        rows = set(self.rows)
        return sum(
            prod(a.extent for a in nest.kept if a not in rows) * DTYPE_BYTES[nest.dtype]
            for nest in self.nests
            if nest.name in read
        )


def group_of(nest: Nest) -> Group:
    """Returns a group of one: its rows are all the loops that it keeps, without a scanned one."""
    scanned = nest.how.axis if isinstance(nest.how, Scan) else None
    return Group((nest,), tuple(a for a in nest.kept if a != scanned))
