"""Definitions on loop axes: every dimension of a value is the row-major position of one or more loops.

A view between two definitions (reshape of heads, split of channels into groups) makes one of them read the other at
quotients and remainders. `refine` splits axes until such reads are plain axes again, so that the two can share loops.
What was split for nothing is merged back when the loops of a kernel are laid out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from egg.expert.index import (
    Axis,
    Index,
    Quotient,
    Remainder,
    axis_index,
    divide,
    flatten,
    modulo,
)  # fmt: skip
from egg.expert.ir import Apply, Cast, Constant, Define, Expr, Guard, Load, Position, Reduce, Scan, substitute, walk


@dataclass(frozen=True)
class Nest:
    """A definition over loops."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    factors: tuple[tuple[Axis, ...], ...]
    """For each dimension of the value the loops whose row-major position it is; none for an extent of 1."""
    body: Expr
    how: Reduce | Scan | None = None
    origin: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[Axis, ...]:
        """Loops of the value's own dimensions."""
        return tuple(axis for axes in self.factors for axis in axes)

    @property
    def reduced(self) -> tuple[Axis, ...]:
        """Loops that are reduced away."""
        return self.how.axes if isinstance(self.how, Reduce) else ()

    @property
    def domain(self) -> tuple[Axis, ...]:
        """All loops."""
        return self.kept + self.reduced

    @property
    def numel(self) -> int:
        """Number of elements of the value."""
        return prod(self.shape)

    @property
    def points(self) -> int:
        """Number of evaluations of the body."""
        return prod(axis.extent for axis in self.domain)

    def index(self) -> tuple[Index, ...]:
        """Returns the logical index of the value's element over its loops."""
        return tuple(flatten([axis_index(a) for a in axes], [a.extent for a in axes]) for axes in self.factors)

    def loads(self) -> Iterator[Load]:
        """Yields the loads of the body, without the integer reads inside indices."""
        return (part for part in walk(self.body) if isinstance(part, Load))

    def fetched(self) -> Iterator[str]:
        """Yields the names of the values that indices of the body read."""
        for index in indices(self.body):
            for fetch in index.fetches():
                yield fetch.source

    @cached_property
    def sources(self) -> frozenset[str]:
        """Names of everything that the body reads."""
        return frozenset((*(load.source for load in self.loads()), *self.fetched()))

    def coordinates(self, at: Sequence[Index]) -> dict[Axis, Index]:
        """Returns the value of each kept loop for a read at the logical index `at`."""
        found: dict[Axis, Index] = {}
        for position, axes in zip(at, self.factors, strict=True):
            inner = prod(axis.extent for axis in axes)
            for number, axis in enumerate(axes):
                inner //= axis.extent
                whole = divide(position, inner)
                found[axis] = whole if number == 0 else modulo(whole, axis.extent)
        return found

    def substituted(self, by: Mapping[Axis, Index]) -> Nest:
        """Returns the nest with axes of the body replaced; factors and reduced axes stay."""
        return replace(self, body=substitute(self.body, by))

    def renamed(self, names: Mapping[Axis, Axis]) -> Nest:
        """Returns the nest with loops renamed throughout."""
        if not any(axis in names for axis in self.domain):
            return self
        how = self.how
        if isinstance(how, Reduce):
            how = replace(how, axes=tuple(names.get(a, a) for a in how.axes))
        elif isinstance(how, Scan):
            how = replace(how, axis=names.get(how.axis, how.axis))
        factors = tuple(tuple(names.get(a, a) for a in axes) for axes in self.factors)
        body = substitute(self.body, {old: axis_index(new) for old, new in names.items()})
        return replace(self, body=body, how=how, factors=factors)


def nest_of(define: Define) -> Nest:
    """Returns the definition over loops; axes of extent 1 become the constant 0."""
    single = {a: Index() for a in (*define.axes, *_reduced(define)) if a.extent == 1}
    factors = tuple(() if a in single else (a,) for a in define.axes)
    body, how = substitute(define.body, single) if single else define.body, define.how
    if isinstance(how, Reduce):
        axes = tuple(a for a in how.axes if a not in single)
        body, how = (body, replace(how, axes=axes)) if axes else (_of_one(define, body, how), None)
    elif isinstance(how, Scan) and how.axis in single:
        body, how = _cast(body, define.dtype), None
    return Nest(define.name, define.dtype, define.shape, factors, body, how, define.origin)


def refine(nests: Sequence[Nest]) -> list[Nest]:
    """Returns the nests with axes split so that reads through reshapes become plain where a common split exists."""
    current = {nest.name: nest for nest in nests}
    queue = list(current)
    while queue:
        wanted: dict[str, tuple[Axis, int]] = {}
        for name in queue:
            nest = current[name]
            own = next(_own_splits(nest, current), None)
            if own is not None:
                wanted[name] = own
            for producer, split in _producer_splits(nest, current):
                wanted.setdefault(producer, split)
        for name, (axis, inner) in wanted.items():
            current[name] = split_loop(current[name], axis, inner)
        touched = set(wanted)
        queue = [n for n, nest in current.items() if n in touched or touched & set(nest.sources)]
    return list(current.values())


def indices(expr: Expr) -> Iterator[Index]:
    """Yields every index of an expression: of loads, positions and guards."""
    for part in walk(expr):
        match part:
            case Load(at=at):
                yield from at
            case Position(index=index):
                yield index
            case Guard(bounds=bounds):
                yield from (bound.index for bound in bounds)
            case _:
                pass


def _own_splits(nest: Nest, nests: Mapping[str, Nest]) -> Iterator[tuple[Axis, int]]:
    """Yields `(axis, inner extent)` for axes of the nest that occur inside a quotient or remainder of a read."""
    fixed = nest.how.axis if isinstance(nest.how, Scan) else None
    own = set(nest.domain) - {fixed}
    loops = (nests[n.source].coordinates(n.at).values() for n in nest.loads() if n.source in nests)
    for index in (*indices(nest.body), *(index for found in loops for index in found)):
        for atom in index.atoms():
            if not isinstance(atom, Quotient | Remainder) or atom.index.const % atom.divisor:
                continue
            for axis, coef in atom.index.terms:
                if axis not in own or coef <= 0 or atom.divisor % coef:
                    continue
                inner = atom.divisor // coef
                if 1 < inner < axis.extent and axis.extent % inner == 0:
                    yield axis, inner


def _producer_splits(nest: Nest, nests: Mapping[str, Nest]) -> Iterator[tuple[str, tuple[Axis, int]]]:
    """Yields splits of axes of other nests that this one reads at the row-major position of several loops."""
    for part in walk(nest.body):
        if not isinstance(part, Load) or part.source not in nests:
            continue
        producer = nests[part.source]
        fixed = producer.how.axis if isinstance(producer.how, Scan) else None
        for axis, position in producer.coordinates(part.at).items():
            inner = _outer_step(position, axis.extent)
            if inner is not None and axis != fixed:
                yield producer.name, (axis, inner)


def _outer_step(position: Index, extent: int) -> int | None:
    """Returns the step of the outermost loop where `position` is the row-major position of at least two loops."""
    if position.const or len(position.terms) < 2:
        return None
    terms = sorted(position.terms, key=lambda term: -term[1])
    covered = extent
    for atom, coef in terms:
        if not isinstance(atom, Axis) or coef * atom.extent != covered:
            return None
        covered = coef
    return terms[0][1] if covered == 1 else None


def split_loop(nest: Nest, axis: Axis, inner: int) -> Nest:
    """Returns the nest with one loop cut into an outer one and an inner one of `inner` steps."""
    outer_axis = Axis(f"{axis.name}a", axis.extent // inner)
    inner_axis = Axis(f"{axis.name}b", inner)
    pair = (outer_axis, inner_axis)
    by = {axis: axis_index(outer_axis) * inner + axis_index(inner_axis)}
    factors = tuple(tuple(b for a in axes for b in (pair if a == axis else (a,))) for axes in nest.factors)
    how = nest.how
    if isinstance(how, Reduce):
        how = replace(how, axes=tuple(b for a in how.axes for b in (pair if a == axis else (a,))))
    return replace(nest, factors=factors, how=how, body=substitute(nest.body, by))


def _reduced(define: Define) -> tuple[Axis, ...]:
    return define.how.axes if isinstance(define.how, Reduce) else ()


def _of_one(define: Define, body: Expr, how: Reduce) -> Expr:
    """Returns what the reduction of a single element gives."""
    if how.kind in ("argmax", "argmin"):
        return Constant(0, define.dtype)
    if how.kind == "sumexp":
        body = Apply("exp", (Apply("sub", (body, body), body.dtype),), body.dtype)
    return _cast(body, define.dtype)


def _cast(body: Expr, dtype: str) -> Expr:
    return body if body.dtype == dtype else Cast(body, dtype)
