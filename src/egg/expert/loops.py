"""The loop nest: the one record between the author, which decides the loops, and the printers, which spell them.

A `Kernel` is a parallel loop over rows. For each row its stages run one after the other; a stage is a nest of inner
loops whose body computes a few scalars, combines some of them (reduction, scan) and stores some. What one stage hands
to the next within a row lives in scratch arrays (an array of shape `()` is a scalar of the row), so a row that fits
the caches is read from memory once. Softmax, every norm, losses, cumulative sums, attention for one query and pointwise
chains are all such kernels; they differ only in their rows and stages.

    for row in rows:                      # parallel, in chunks of `grain`
        for stage in stages:
            for point in stage.order:     # the last axis is the lane axis: vectorised, `lanes` partial results
                for c in stage.computes: ...
    for stage in tail: ...                # once, after all rows: the ends of reductions that cross rows

Two ways to vectorise: along the last axis of each stage's order (`columns` is None), or along a row axis (`columns`):
then a row is a tile of `tile` neighbouring columns, every row scalar becomes an array of that many elements, and
the tile is the innermost loop of every stage. The second fits reductions and scans over an axis that is not contiguous.

A `Template` stands beside the kernels for what such loops can't say, a sort or a scatter. It has a name, arrays, a
schedule and slices that run in parallel as rows do, and it runs in the same native call.

Two ways to run in parallel: over rows (`mapping="rows"`), or, where rows are few and long, over the outermost loop of
each stage with partial results combined in a fixed order (`mapping="inner"`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Literal

from egg.expert.index import Axis, Index
from egg.expert.ir import Expr, Library, Reduce, Scalar, Scan
from egg.schema.candidate import KnobSpec
from egg.schema.graph import Node, node_refs
from egg.schema.plan import ScheduleValue


@dataclass(frozen=True)
class Array:
    """A tensor that a kernel touches."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    """In elements, one for each dimension."""
    place: Literal["input", "output", "scratch"]
    """`input` and `output` are pointers that come from outside; `scratch` belongs to one row."""
    over: str = ""
    """Of an output: the library result whose memory it takes. It holds that result until it is written."""

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)


@dataclass(frozen=True)
class Compute:
    """One scalar for each point of a stage, or one result of a reduction over the stage's loops.

    A load in `body` reads an array of the kernel at logical indices of that array, or, with `at=()` and the name of an
    earlier plain compute of the same stage, that scalar of the same point.
    """

    name: str
    dtype: str
    """Of the value as stored; floating bodies compute in float32 at least, half types are converted on store."""
    body: Expr
    how: Reduce | Scan | None = None
    """A reduction's axes are loops of this stage, or rows: then it crosses rows and its end is in the tail."""
    stores: tuple[Store, ...] = ()
    """Where the value goes: outputs, scratch, both, or nowhere (used in the same stage only)."""
    origin: tuple[str, ...] = ()


@dataclass(frozen=True)
class Store:
    """An element of an array."""

    array: str
    at: tuple[Index, ...]


@dataclass(frozen=True)
class Stage:
    """One nest of inner loops."""

    order: tuple[Axis, ...]
    """Loops, outermost first; kept axes and reduced axes. Empty for scalars of the row."""
    computes: tuple[Compute, ...]


@dataclass(frozen=True)
class Kernel:
    """Rows and stages, with every array they touch."""

    name: str
    rows: tuple[Axis, ...]
    stages: tuple[Stage, ...]
    arrays: tuple[Array, ...]
    columns: Axis | None = None
    """The row axis that is vectorised; one of `rows`, then its last."""
    mapping: Literal["rows", "inner"] = "rows"
    tail: tuple[Stage, ...] = ()
    doc: str = ""
    """Formula, shapes, what is fused."""

    def array(self, name: str) -> Array:
        """Returns the array of that name. Raises KeyError for an unknown one."""
        for found in self.arrays:
            if found.name == name:
                return found
        raise KeyError(name)


@dataclass(frozen=True)
class Template:
    """One operator on slices along a dimension, by a C++ function that works on one slice.

    All arrays have the same rank, and the slices of each are counted by the loops of the others.
    """

    name: str
    function: Literal["sort", "scatter"]
    node: Node
    """The operator that it stands for."""
    arrays: tuple[Array, ...]
    """sort: source, then sorted values and their positions, or positions alone; the results may be shorter slices.
    scatter: base, positions, the source unless `value` is stored, result."""
    dim: int
    """Along which the slices lie."""
    descending: bool = False
    value: Scalar | None = None
    """What a scatter without a source stores."""
    doc: str = ""

    @property
    def loops(self) -> tuple[int, ...]:
        """Extents of the loops over slices, outermost first."""
        shape = self.arrays[0].shape
        return (*shape[: self.dim], *shape[self.dim + 1 :])


Native = Kernel | Template
"""What is compiled: it touches `arrays`, and outputs are written."""

Step = Native | Library


def read_names(step: Step) -> frozenset[str]:
    """Returns the values that a step reads."""
    if isinstance(step, Native):
        return frozenset(a.name for a in step.arrays if a.place == "input")
    return frozenset(node_refs(step.node))


@dataclass(frozen=True)
class Schedule:
    """The numbers of one native step: the values in use and their choices."""

    values: dict[str, ScheduleValue] = field(default_factory=dict)
    """By knob: `threads`, `grain`, `lanes`, `tile`, `unroll`, `stream`, ... without the kernel's prefix."""
    space: dict[str, KnobSpec] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """A program as steps in order: kernels, templates and library calls, with the buffers between them."""

    steps: tuple[Step, ...]
    buffers: tuple[Array, ...] = ()
    """Values that one step hands to another and that are not returned."""
