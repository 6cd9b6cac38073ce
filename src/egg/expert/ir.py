"""The tensor program: what the built-in author rewrites an operator graph into, before loops exist.

A `Program` is a list of statements in topological order. A `Define` says each element of a value as a scalar
expression over axes, possibly reduced or scanned. A `Library` statement keeps a whole operator (convolution, matmul,
sort) as one call. There are no views: a view is a substitution of indices in the loads that go through it, and every
value is stored densely in row-major order of its own shape.

The program is the same for every language. `loops.py` groups it into kernels; `emit/` prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from egg.expert.index import Axis, Fetch, Index
from egg.schema.graph import GraphInput, Mutation, Node, TensorSpec, Tree

Scalar = bool | int | float
ReduceKind = Literal["sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "sumexp"]
ScanKind = Literal["sum", "prod", "max", "min", "logsumexp"]


@dataclass(frozen=True)
class Load:
    """One element of a value at a logical index, in the value's own dtype."""

    source: str
    at: tuple[Index, ...]
    dtype: str


@dataclass(frozen=True)
class Constant:
    """A literal of a dtype."""

    value: Scalar
    dtype: str


@dataclass(frozen=True)
class Position:
    """An index as an integer value (arange, iota, causal masks)."""

    index: Index
    dtype: str = "int64"


@dataclass(frozen=True)
class Apply:
    """A scalar operator of the table in `scalar_ops.py`. Arguments already have the dtypes the operator computes in."""

    op: str
    args: tuple[Expr, ...]
    dtype: str


@dataclass(frozen=True)
class Cast:
    """Conversion to another dtype with PyTorch's rounding."""

    arg: Expr
    dtype: str


@dataclass(frozen=True)
class Bound:
    """low <= index < high."""

    index: Index
    low: int
    high: int


@dataclass(frozen=True)
class Guard:
    """`body` where all bounds hold, else `other`. Only one is evaluated: the loads of the other may be out of range."""

    bounds: tuple[Bound, ...]
    body: Expr
    other: Expr
    dtype: str


Expr = Load | Constant | Position | Apply | Cast | Guard


@dataclass(frozen=True)
class Reduce:
    """`body` reduced over `axes`.

    Floating sums accumulate at least in float32. argmax and argmin give the flat position over `axes` of the first
    extreme element, NaN winning as in PyTorch. sumexp is the sum of exp(body - maximum of body), in one pass.
    """

    kind: ReduceKind
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class Scan:
    """Inclusive prefix combination of `body` along `axis`, which is one of the value's own axes."""

    kind: ScanKind
    axis: Axis
    reverse: bool = False


@dataclass(frozen=True)
class Define:
    """A value, element by element."""

    name: str
    axes: tuple[Axis, ...]
    """One for each dimension of the value, in order; extents are the shape. Names are unique within the program."""
    dtype: str
    """Of the value as stored. The body has the same, or float32 where this is a half type: then storing rounds, and a
    body that is inlined into its users does not. Loads of half types are a whole body or the argument of a `Cast`."""
    body: Expr
    """Over `axes`, plus the axes of `how` when that is a reduction."""
    how: Reduce | Scan | None = None
    origin: tuple[str, ...] = ()
    """Names of the graph nodes that it comes from, for docstrings and reports."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the value."""
        return tuple(a.extent for a in self.axes)

    @property
    def spec(self) -> TensorSpec:
        """Shape and dtype of the value."""
        return TensorSpec(shape=self.shape, dtype=self.dtype)


@dataclass(frozen=True)
class Library:
    """An operator that stays whole: one call of a vendor library or of torch.

    Its tensor arguments are dense row-major values of the program or strided program inputs.
    """

    node: Node
    reason: str
    """Why it stays: `anchor` for matmul and convolution, otherwise what no family covers."""

    @property
    def name(self) -> str:
        """The name of its first result."""
        return self.node.name


Statement = Define | Library


@dataclass(frozen=True)
class Program:
    """A task as statements, with its interface."""

    inputs: tuple[GraphInput, ...]
    statements: tuple[Statement, ...]
    returns: Tree
    mutations: tuple[Mutation, ...] = ()
    specs: Mapping[str, TensorSpec] = field(default_factory=dict)
    """Of every value by name: inputs, defined values and library results."""


def children(expr: Expr) -> tuple[Expr, ...]:
    """Returns the direct sub-expressions."""
    match expr:
        case Apply(args=args):
            return args
        case Cast(arg=arg):
            return (arg,)
        case Guard(body=body, other=other):
            return (body, other)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """Yields the expression and all its parts, children first."""
    for child in children(expr):
        yield from walk(child)
    yield expr


def loads(expr: Expr) -> Iterator[Load | Fetch]:
    """Yields every read of a tensor, gathers' integer reads included."""
    for part in walk(expr):
        match part:
            case Load(at=at):
                for index in at:
                    yield from index.fetches()
                yield part
            case Position(index=index):
                yield from index.fetches()
            case Guard(bounds=bounds):
                for bound in bounds:
                    yield from bound.index.fetches()
            case _:
                pass


def rewrite(expr: Expr, leaf: Callable[[Load], Expr], index: Callable[[Index], Index]) -> Expr:
    """Returns the expression with every index mapped by `index`, then every load replaced by `leaf`."""

    def go(part: Expr) -> Expr:
        match part:
            case Load(at=at):
                return leaf(replace(part, at=tuple(map(index, at))))
            case Constant():
                return part
            case Position(index=inner):
                return replace(part, index=index(inner))
            case Apply(args=args):
                return replace(part, args=tuple(map(go, args)))
            case Cast(arg=arg):
                return replace(part, arg=go(arg))
            case Guard(bounds=bounds, body=body, other=other):
                mapped = tuple(replace(b, index=index(b.index)) for b in bounds)
                return replace(part, bounds=mapped, body=go(body), other=go(other))

    return go(expr)


def substitute(expr: Expr, by: Mapping[Axis, Index]) -> Expr:
    """Returns the expression with axes replaced by indices."""
    return rewrite(expr, lambda load: load, lambda index: index.substitute(by))


def inline(define: Define, at: tuple[Index, ...]) -> Expr:
    """Returns the element of a plain (not reduced, not scanned) definition at an index, as an expression."""
    if define.how is not None:
        raise ValueError(f"{define.name} is a {define.how}; only plain definitions can be inlined")
    return substitute(define.body, dict(zip(define.axes, at, strict=True)))
