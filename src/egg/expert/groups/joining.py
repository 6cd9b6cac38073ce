"""Two groups of definitions become one where each reader of a row needs what the other makes of the same row only.

The rows of a group are loops that all its definitions keep. When groups join, reads tell which loops are the same; rows
that the two do not share become inner loops, which is always legal and costs row scratch.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from math import prod

from egg.expert.groups.inlining import element
from egg.expert.groups.matching import links, same_data, same_loops
from egg.expert.groups.nests import Nest
from egg.expert.groups.rows import Group
from egg.expert.index import Axis, Index
from egg.expert.ir import Load, Reduce, rewrite
from egg.expert.work import flops

_CLONE_SHARE = 0.5
"""Largest work of a repeated producer against the work of its readers."""
_ROWLESS_SHARE = 1 / 16
"""Smallest size of a reduction to one value against its readers, for the two to share one kernel without rows."""
_SHORTEST_INNER = 16
"""Points of a row, at least, where a pointwise group gives up rows to evaluate something once for each of them."""


def join(first: Group, second: Group, scratch_limit_bytes: int) -> Group | None:
    """Returns one group of both, where `second` reads `first`, or None where they cannot or should not share rows."""
    if any(name in first.names for nest in second.nests for name in nest.fetched()):
        return None
    crossed = _join_tail(first, second) or _join_crossing(first, second) or _join_beside(first, second)
    if crossed is not None:
        return crossed
    if first.crossing or (second.crossing and not _same_rows(first, second)):
        return None
    names = same_loops(first, second)
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
        if key not in clones:
            taken = second.names | {clone.name for clone in clones.values()}
            clones[key] = _clone(nest, load.at, second.rows, _clone_name(nest, second, taken))
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
    used = {a for _, _, link in links(first, second) for index in link.values() for a in index.axes()}
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


def _clone_name(nest: Nest, reader: Group, taken: frozenset[str]) -> str:
    """Returns a name that no clone in another group has either, as groups that read the same value may join later."""
    stem = f"{nest.name}_for_{reader.nests[-1].name}"
    return next(name for n in count() if (name := f"{stem}{n or ''}") not in taken)


def _same_rows(first: Group, second: Group) -> bool:
    names = same_loops(first, second)
    return {names.get(a) for a in first.rows} == set(second.rows)


def _worthwhile(first: Group, second: Group, joined: Group, limit_bytes: int) -> bool:
    if joined.rows:
        loses = len(joined.rows) < len(second.rows)
        if loses and first.is_plain:
            return False
        kept_all = not loses and len(joined.rows) == len(first.rows)
        return kept_all or joined.scratch_bytes() <= limit_bytes
    if first.rows or (second.rows and not second.is_plain):
        return False
    if first.is_plain:
        return not second.rows
    return first.points >= second.points * _ROWLESS_SHARE


def _join_tail(first: Group, second: Group) -> Group | None:
    """Returns the group with scalars that are computed from its crossing reductions, or None."""
    if not first.crossing or not second.is_plain or any(nest.kept for nest in second.nests):
        return None
    if any(producer.name not in first.crossing for producer, _, _ in links(first, second)):
        return None
    return replace(first, nests=(*first.nests, *second.nests), crossing=first.crossing | second.names)


def _join_crossing(first: Group, second: Group) -> Group | None:
    """Returns the group with a reduction to one value of what its rows make, or None."""
    if len(second.nests) != 1 or not first.rows:
        return None
    nest = second.nests[0]
    if not isinstance(nest.how, Reduce) or nest.kept or nest.how.kind in ("argmax", "argmin"):
        return None
    if any(producer.name in first.crossing for producer, _, _ in links(first, second)):
        return None
    names = same_loops(first, second)
    rows = tuple(names.get(a) for a in first.rows)
    if not all(row in nest.reduced for row in rows):
        return None
    back = {b: a for a, b in names.items()}
    return replace(first, nests=(*first.nests, nest.renamed(back)), crossing=first.crossing | {nest.name})


def _join_beside(first: Group, second: Group) -> Group | None:
    """Returns the group with another reduction over its rows, which its scalars after the last row need, or None."""
    if first.rows or not second.crossing or len(first.nests) != 1:
        return None
    nest = first.nests[0]
    if not isinstance(nest.how, Reduce) or nest.kept or nest.how.kind in ("argmax", "argmin"):
        return None
    if any(reader.name not in second.crossing or reader.how is not None for _, reader, _ in links(first, second)):
        return None
    names = same_data(first, second)
    if not set(second.rows) <= {names.get(a) for a in nest.reduced}:
        return None
    crossing = second.crossing | {nest.name}
    return replace(second, nests=(nest.renamed(names), *second.nests), crossing=crossing)
