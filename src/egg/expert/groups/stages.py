"""The definitions of a group as stages of loops, with row scratch between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from egg.expert.groups.inlining import element
from egg.expert.groups.nests import Nest
from egg.expert.groups.rows import Group
from egg.expert.index import Axis, axis_index
from egg.expert.ir import Expr, Load, Reduce, Scan, rewrite
from egg.expert.loops import Array, Compute, Stage, Store
from egg.expert.work import flops
from egg.schema.graph import DTYPE_BYTES

_CHEAP_FLOPS = 2
_RECOMPUTE_FLOPS = 8


@dataclass
class Draft:
    """A stage while definitions are still being placed in it."""

    loops: frozenset[Axis]
    nests: list[Nest] = field(default_factory=list)


@dataclass(frozen=True)
class Staged:
    """The stages of a group and the arrays that they hand values through."""

    stages: tuple[Stage, ...]
    tail: tuple[Stage, ...]
    scratch: tuple[Array, ...]
    spilled: frozenset[str]
    """Values that are too large for row scratch and go through memory, though nobody outside reads them."""


class Stager:
    """Places the definitions of one group; `written` names the values that have to reach memory."""

    def __init__(self, group: Group, written: frozenset[str], keep: str, scratch_limit_bytes: int) -> None:
        self._group = group
        self._rows = set(group.rows)
        self._made: Mapping[str, Nest] = {nest.name: nest for nest in group.nests}
        self._written = set(written)
        self._repeated = self._choose_repeated(keep)
        self._spilled = self._choose_spilled(scratch_limit_bytes)
        self._scratch: dict[str, Array] = {}
        self._place: dict[str, int] = {}

    def run(self) -> Staged:
        """Returns the stages in order."""
        drafts: list[Draft] = []
        tail: list[Nest] = []
        for nest in self._group.nests:
            if nest.name in self._repeated:
                continue
            if nest.name in self._group.crossing and not isinstance(nest.how, Reduce):
                tail.append(nest)
            else:
                self._add(nest, drafts)
        bodies = [[(nest, self._body(nest, i, draft)) for nest in draft.nests] for i, draft in enumerate(drafts)]
        ends = [(nest, self._body(nest, len(drafts), Draft(frozenset(), tail))) for nest in tail]
        stages = tuple(
            Stage(tuple(sorted(draft.loops, key=lambda a: a.name)), tuple(self._compute(n, b) for n, b in computes))
            for draft, computes in zip(drafts, bodies, strict=True)
        )
        last = (Stage((), tuple(self._compute(n, b) for n, b in ends)),) if ends else ()
        return Staged(stages, last, tuple(self._scratch.values()), frozenset(self._spilled))

    # decisions

    def _choose_repeated(self, keep: str) -> set[str]:
        """Returns the plain definitions that each reader evaluates for itself."""
        found: set[str] = set()
        for nest in self._group.nests:
            fixed = nest.name in self._written or nest.name in self._group.crossing
            if nest.how is not None or fixed or keep == "keep":
                continue
            work, count = flops(nest.body), sum(1 for _ in nest.loads())
            limit = _RECOMPUTE_FLOPS if keep == "recompute" else _CHEAP_FLOPS
            readers = {n.name for n in self._group.nests for load in n.loads() if load.source == nest.name}
            cheap = work <= limit and (count <= 1 or keep == "recompute")
            if cheap and self._loops(nest) and len(readers) > 1:
                found.add(nest.name)
        return found

    def _choose_spilled(self, limit_bytes: int) -> set[str]:
        """Returns what goes through memory because the row scratch would not stay in the cache."""
        read = {load.source for nest in self._group.nests for load in nest.loads()}
        sizes = {
            n.name: prod(a.extent for a in self._kept(n)) * DTYPE_BYTES[n.dtype]
            for n in self._group.nests
            if n.name in read and n.name not in self._written and n.name not in self._repeated and self._kept(n)
        }
        spilled: set[str] = set()
        for name in sorted(sizes, key=lambda n: -sizes[n]):
            total = sum(size for n, size in sizes.items() if n not in spilled)
            if total <= limit_bytes and self._rows:
                break
            spilled.add(name)
        self._written |= spilled
        return spilled

    # placing

    def _kept(self, nest: Nest) -> tuple[Axis, ...]:
        return tuple(a for a in nest.kept if a not in self._rows)

    def _loops(self, nest: Nest) -> frozenset[Axis]:
        return frozenset(a for a in nest.domain if a not in self._rows)

    def _add(self, nest: Nest, drafts: list[Draft]) -> None:
        earliest, loops = self._earliest(nest, nest), self._loops(nest)
        for number, draft in enumerate(drafts):
            if number >= earliest and draft.loops == loops and _orders_agree(nest, draft):
                break
        else:
            number, draft = len(drafts), Draft(loops)
            drafts.append(draft)
        draft.nests.append(nest)
        self._place[nest.name] = number

    def _earliest(self, nest: Nest, reader: Nest) -> int:
        """Returns the first stage in which the body of `nest`, evaluated at the loops of `reader`, can stand."""
        earliest = 0
        for load in nest.loads():
            producer = self._made.get(load.source)
            if producer is None:
                continue
            if producer.name in self._repeated:
                earliest = max(earliest, self._earliest(producer, reader))
            elif producer.name in self._place:
                same = nest is reader and self._same_point(producer, load, self._loops(reader))
                earliest = max(earliest, self._place[producer.name] + (0 if same else 1))
        return earliest

    def _same_point(self, producer: Nest, load: Load, loops: frozenset[Axis]) -> bool:
        """Returns whether the load is the very point that the loops are at."""
        if isinstance(producer.how, Reduce) or self._loops(producer) != loops:
            return False
        return all(index == axis_index(axis) for axis, index in producer.coordinates(load.at).items())

    # bodies

    def _body(self, nest: Nest, stage: int, draft: Draft) -> Expr:
        return self._resolved(nest.body, stage, draft)

    def _resolved(self, body: Expr, stage: int, draft: Draft) -> Expr:
        def leaf(load: Load) -> Expr:
            producer = self._made.get(load.source)
            if producer is None:
                return load
            if producer.name in self._repeated:
                return self._resolved(element(producer, load.at), stage, draft)
            here = any(nest is producer for nest in draft.nests)
            if here and (self._same_point(producer, load, draft.loops)):
                return Load(producer.name, (), load.dtype)
            return self._handed_on(producer, load)

        return rewrite(body, leaf, lambda index: index)

    def _handed_on(self, producer: Nest, load: Load) -> Load:
        """Returns the read of a value that an earlier stage made."""
        kept = self._kept(producer) if producer.name not in self._group.crossing else ()
        if kept and producer.name in self._written:
            return load
        name = f"{producer.name}_row"
        shape = tuple(a.extent for a in kept)
        self._scratch.setdefault(producer.name, Array(name, producer.dtype, shape, dense(shape), "scratch"))
        coordinates = producer.coordinates(load.at)
        return Load(name, tuple(coordinates[a] for a in kept), load.dtype)

    def _compute(self, nest: Nest, body: Expr) -> Compute:
        stores: list[Store] = []
        if nest.name in self._scratch:
            kept = self._kept(nest) if nest.name not in self._group.crossing else ()
            stores.append(Store(f"{nest.name}_row", tuple(axis_index(a) for a in kept)))
        if nest.name in self._written:
            stores.append(Store(nest.name, nest.index()))
        return Compute(nest.name, nest.dtype, body, nest.how, tuple(stores), nest.origin)


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns row-major strides in elements."""
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))


def _orders_agree(nest: Nest, draft: Draft) -> bool:
    """Returns whether the nest can share the loops of the stage: scans along different loops, or both ways, cannot."""
    scans = {(n.how.axis, n.how.reverse) for n in (*draft.nests, nest) if isinstance(n.how, Scan)}
    return len(scans) <= 1
