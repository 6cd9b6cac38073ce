"""Two groups of definitions become one where each reader of a row needs what the other makes of the same row only.

The rows of a group are loops that all its definitions keep. When groups join, reads tell which loops are the same; rows
that the two do not share become inner loops, which is always legal and costs row scratch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from egg.expert.groups.inlining import element
from egg.expert.groups.nests import Nest
from egg.expert.index import Axis, Index
from egg.expert.ir import Load, Reduce, Scan, rewrite
from egg.expert.work import flops
from egg.schema.graph import DTYPE_BYTES

_CLONE_SHARE = 0.5
"""Largest work of a repeated producer against the work of its readers."""
_SERIAL_POINTS = 16 * 1024
"""Work that one thread finishes before a second one would be awake: it may be a kernel without rows."""
_SHORTEST_INNER = 16
"""Points of a row, at least, where a pointwise group gives up rows to evaluate something once for each of them."""


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


def join(first: Group, second: Group, scratch_limit_bytes: int) -> Group | None:
    """Returns one group of both, where `second` reads `first`, or None where they cannot or should not share rows."""
    if any(name in first.names for nest in second.nests for name in nest.fetched()):
        return None
    crossed = _join_tail(first, second) or _join_crossing(first, second)
    if crossed is not None:
        return crossed
    if first.crossing or (second.crossing and not _same_rows(first, second)):
        return None
    names = _same_loops(first, second)
    rows = tuple(b for b in second.rows if any(names.get(a) == b for a in first.rows))
    joined = Group((*(n.renamed(names) for n in first.nests), *second.nests), rows, second.crossing)
    return joined if _worthwhile(first, second, joined, scratch_limit_bytes) else None


def absorb(first: Group, second: Group, stored: frozenset[str]) -> Group | None:
    """Returns `second` with the plain definitions of `first` that it reads evaluated again for each of its rows.

    That is for small producers that lack some rows of their reader: per-channel scales, gates, temperatures.
    Returns None where it would repeat too much work.
    """
    clones: dict[tuple[str, tuple[Index, ...]], Nest] = {}
    plain = {nest.name: nest for nest in first.nests}

    def leaf(load: Load) -> Load:
        nest = plain.get(load.source)
        if nest is None:
            return load
        key = (load.source, load.at)
        clones.setdefault(key, _clone(nest, load.at, second.rows, f"{nest.name}_{_spell(len(clones))}"))
        clone = clones[key]
        return replace(load, source=clone.name, at=clone.index())

    if second.crossing or any(name in plain for nest in second.nests for name in nest.fetched()):
        return None
    second = _with_inner_loops(first, second)
    nests = tuple(replace(n, body=rewrite(n.body, leaf, lambda index: index)) for n in second.nests)
    allowed = _CLONE_SHARE * sum(n.points * (flops(n.body) + 2) for n in second.nests)
    for (name, at), clone in clones.items():
        original = plain[name]
        inner = [load.source for load in original.loads() if load.source in plain and load.source not in stored]
        if original.how is not None or inner or any(index.fetches() for index in at):
            return None
        if not clone_axes_fit(clone, second):
            return None
    work = sum(c.points * (flops(c.body) + 1) for c in clones.values())
    return replace(second, nests=(*clones.values(), *nests)) if work <= allowed else None


def _with_inner_loops(first: Group, second: Group) -> Group:
    """Returns a pointwise group with those rows as inner loops that nothing it reads from `first` depends on."""
    if not second.is_plain:
        return second
    used = {a for _, _, link in _links(first, second) for index in link.values() for a in index.axes()}
    rows = second.rows
    while rows and rows[-1] not in used:
        rows = rows[:-1]
    inner = prod(a.extent for a in second.rows[len(rows) :])
    return replace(second, rows=rows) if inner >= _SHORTEST_INNER else second


def clone_axes_fit(clone: Nest, second: Group) -> bool:
    """Returns whether a reader of the group loops over all loops of the clone."""
    return any(set(clone.kept) <= set(nest.domain) | set(second.rows) for nest in second.nests)


def _clone(nest: Nest, at: tuple[Index, ...], rows: tuple[Axis, ...], name: str) -> Nest:
    used = {axis for index in at for axis in index.axes()}
    axes = (*rows, *sorted(used - set(rows), key=lambda axis: axis.name))
    return Nest(
        name, nest.dtype, tuple(a.extent for a in axes), tuple((a,) for a in axes), element(nest, at), None, nest.origin
    )


def _spell(number: int) -> str:
    return f"at{number}"


def _links(first: Group, second: Group) -> Iterator[tuple[Nest, Nest, dict[Axis, Index]]]:
    """Yields `(producer, reader, loop of the producer -> index of the read)` for every read between the groups."""
    made = {nest.name: nest for nest in first.nests}
    for reader in second.nests:
        for load in reader.loads():
            if load.source in made:
                producer = made[load.source]
                yield producer, reader, producer.coordinates(load.at)


def _same_loops(first: Group, second: Group) -> dict[Axis, Axis]:
    """Returns loops of `second` by the loop of `first` that every read puts at the same place; rows first."""
    wanted: dict[Axis, set[Axis | None]] = {}
    for _, _, link in _links(first, second):
        for axis, index in link.items():
            wanted.setdefault(axis, set()).add(index.as_axis())
    names: dict[Axis, Axis] = {}
    by_rank = sorted(wanted, key=lambda a: a not in first.rows)
    for axis in by_rank:
        found = wanted[axis]
        other = next(iter(found)) if len(found) == 1 else None
        if other is None or other.extent != axis.extent or other in names.values():
            continue
        if (
            axis in first.rows
            and other not in second.rows
            and any(o in second.rows for a, os in wanted.items() if a != axis for o in os if o == other)
        ):
            continue
        names[axis] = other
    return names


def _same_rows(first: Group, second: Group) -> bool:
    names = _same_loops(first, second)
    return {names.get(a) for a in first.rows} == set(second.rows)


def _worthwhile(first: Group, second: Group, joined: Group, limit_bytes: int) -> bool:
    if joined.rows:
        loses = len(joined.rows) < len(second.rows)
        if loses and first.is_plain:
            return False
        kept_all = not loses and len(joined.rows) == len(first.rows)
        return kept_all or joined.scratch_bytes() <= limit_bytes
    if first.rows or max(first.points, second.points) <= _SERIAL_POINTS:
        return not first.rows
    return second.is_plain and not any(nest.kept for nest in second.nests)


def _join_tail(first: Group, second: Group) -> Group | None:
    """Returns the group with scalars that are computed from its crossing reductions, or None."""
    if not first.crossing or not second.is_plain or any(nest.kept for nest in second.nests):
        return None
    if any(producer.name not in first.crossing for producer, _, _ in _links(first, second)):
        return None
    return replace(first, nests=(*first.nests, *second.nests), crossing=first.crossing | second.names)


def _join_crossing(first: Group, second: Group) -> Group | None:
    """Returns the group with a reduction to one value of what its rows make, or None."""
    if len(second.nests) != 1 or not first.rows:
        return None
    nest = second.nests[0]
    if not isinstance(nest.how, Reduce) or nest.kept or nest.how.kind in ("argmax", "argmin"):
        return None
    if any(producer.name in first.crossing for producer, _, _ in _links(first, second)):
        return None
    names = _same_loops(first, second)
    rows = tuple(names.get(a) for a in first.rows)
    if not all(row in nest.reduced for row in rows):
        return None
    back = {b: a for a, b in names.items()}
    return replace(first, nests=(*first.nests, nest.renamed(back)), crossing=first.crossing | {nest.name})
