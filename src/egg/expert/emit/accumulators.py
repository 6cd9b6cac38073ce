"""The reductions of one stage as its printer sees them: where each accumulates, and in which dtype."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from egg.expert.emit.dtypes import HALF
from egg.expert.emit.point import dtype_of
from egg.expert.index import Axis
from egg.expert.ir import Reduce
from egg.expert.loops import Compute


@dataclass(frozen=True)
class Accumulator:
    """A reduction at work within one stage."""

    compute: Compute
    how: Reduce
    first: int
    """The outermost reduced loop."""
    tail: int
    """From this loop on all loops are reduced; the number of loops where the last one is kept."""
    kept: tuple[Axis, ...]
    """Kept loops inside the outermost reduced one."""
    wide: bool
    """Whether floats end in a double."""
    dtype: str
    name: str
    """Stem of its variables: `_lanes`, `_at`, `_total`, `_top`, `_block`, and `_all` for the array over the kept loops;
    `_tops` and `_totals` are those arrays of a maximum and its sum."""

    @property
    def arg(self) -> bool:
        """Whether the position of the extreme element is the result."""
        return self.how.kind in ("argmax", "argmin")

    @property
    def online(self) -> bool:
        """Whether a running maximum is kept beside the sum of exponentials relative to it."""
        return self.how.kind == "sumexp"

    @property
    def operand(self) -> str:
        """The dtype of the values that come in, as held."""
        dtype = dtype_of(self.compute.body)
        return "float32" if dtype in HALF else dtype


def is_top(acc: Accumulator, online: Accumulator) -> bool:
    """Returns whether the maximum that `online` keeps is the whole of another reduction."""
    return acc.how.kind == "max" and acc.how.axes == online.how.axes and acc.compute.body == online.compute.body


def position_dtype(how: Reduce) -> str:
    """Returns the integer that holds a position over the reduced axes while it is searched for."""
    return "int32" if prod(a.extent for a in how.axes) < 2**31 else "int64"
