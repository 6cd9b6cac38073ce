"""Plain definitions that disappear into their readers before any grouping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from egg.expert.groups.nests import Nest
from egg.expert.index import Index
from egg.expert.ir import Expr, Load, rewrite, substitute
from egg.expert.work import flops

_CHEAP_FLOPS = 4
"""Work that may be repeated a few times, for instance in overlapping windows."""
_REPEATS = 4
_SHARED_FLOPS = 2
"""Work that several readers may each do again, rather than share a stored value: a cast, a scale, a ReLU."""
_SHARED_READERS = 4
_FREE_FLOPS = 12
"""Work that may be repeated everywhere when it reads no memory: masks and ranges."""


def needed(nests: Sequence[Nest], roots: frozenset[str]) -> list[Nest]:
    """Returns the nests that `roots` depend on, in order."""
    alive = set(roots)
    kept: list[Nest] = []
    for nest in reversed(nests):
        if nest.name in alive:
            kept.append(nest)
            alive.update(nest.sources)
    return kept[::-1]


def inline_plain(nests: Sequence[Nest], stored: frozenset[str]) -> list[Nest]:
    """Returns the nests without those plain ones that cost nothing to evaluate where they are read.

    `stored` names values that have to exist in memory; they are never inlined, because readers can share them.
    """
    done: dict[str, Nest] = {}
    inlined: dict[str, Nest] = {}
    readers = _readers(nests)
    for nest in nests:
        body = _with_inlined(nest.body, inlined)
        nest = replace(nest, body=body) if inlined else nest
        if nest.name not in stored and _inlines(nest, readers.get(nest.name, [])):
            inlined[nest.name] = nest
        else:
            done[nest.name] = nest
    return list(done.values())


def element(nest: Nest, at: tuple[Index, ...]) -> Expr:
    """Returns the element of a plain nest at a logical index, as an expression."""
    return substitute(nest.body, nest.coordinates(at))


def _with_inlined(body: Expr, inlined: Mapping[str, Nest]) -> Expr:
    def leaf(load: Load) -> Expr:
        nest = inlined.get(load.source)
        return load if nest is None else element(nest, load.at)

    return rewrite(body, leaf, lambda index: index)


def _readers(nests: Sequence[Nest]) -> dict[str, list[Nest | None]]:
    """Returns the reader of each load by the name of what it reads; None for integer reads inside an index."""
    found: dict[str, list[Nest | None]] = {}
    for nest in nests:
        for load in nest.loads():
            found.setdefault(load.source, []).append(nest)
        for name in nest.fetched():
            found.setdefault(name, []).append(None)
    return found


def _inlines(nest: Nest, readers: list[Nest | None]) -> bool:
    if nest.how is not None or None in readers:
        return False
    users = [reader for reader in readers if reader is not None]
    work, count = flops(nest.body), sum(1 for _ in nest.loads())
    if count == 0 and work <= _FREE_FLOPS:
        return True
    repeats = max((user.points / max(nest.numel, 1) for user in users), default=0)
    if len(users) == 1:
        return repeats <= 1 or work == 0 or (work <= _CHEAP_FLOPS and repeats <= _REPEATS)
    return work <= _SHARED_FLOPS and count <= 1 and len(users) <= _SHARED_READERS and repeats <= _REPEATS
