"""Which loops of two groups are the same."""

from __future__ import annotations

from collections.abc import Iterator

from egg.expert.groups.nests import Nest
from egg.expert.groups.rows import Group
from egg.expert.index import Axis, Index
from egg.expert.ir import loads


def links(first: Group, second: Group) -> Iterator[tuple[Nest, Nest, dict[Axis, Index]]]:
    """Yields `(producer, reader, loop of the producer -> index of the read)` for every read between the groups."""
    made = {nest.name: nest for nest in first.nests}
    for reader in second.nests:
        for load in reader.loads():
            if load.source in made:
                producer = made[load.source]
                yield producer, reader, producer.coordinates(load.at)


def same_loops(first: Group, second: Group) -> dict[Axis, Axis]:
    """Returns loops of `second` by the loop of `first` that every read puts at the same place; rows first."""
    wanted: dict[Axis, set[Axis | None]] = {}
    for _, _, link in links(first, second):
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


def same_data(first: Group, second: Group) -> dict[Axis, Axis]:
    """Returns loops of `second` by the loop of `first` that runs over the same dimension of what both read."""
    places: dict[tuple[str, int], Index] = {}
    for nest in second.nests:
        for load in loads(nest.body):
            for dim, index in enumerate(load.at):
                places.setdefault((load.source, dim), index)
    names: dict[Axis, Axis] = {}
    for nest in first.nests:
        for load in loads(nest.body):
            for dim, index in enumerate(load.at):
                axis, other = index.as_axis(), places.get((load.source, dim), Index()).as_axis()
                if axis is None or other is None or axis.extent != other.extent:
                    continue
                if axis not in names and other not in names.values():
                    names[axis] = other
    return names
