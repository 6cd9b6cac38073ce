"""What the definitions of one group have in common: loops over the same data, and expensive parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from egg.expert.groups.matching import same_data
from egg.expert.groups.nests import Nest, indices
from egg.expert.groups.rows import Group
from egg.expert.index import Axis, Index
from egg.expert.ir import Apply, Cast, Expr, Guard, Load, children, rewrite
from egg.expert.work import flops
from egg.schema.graph import DTYPE_BYTES

_EXPENSIVE_FLOPS = 10
"""Work that is worth a store and a load within a row: an exponential and more."""


def aligned(group: Group) -> Group:
    """Returns the group with inner loops of one name where definitions run over the same dimension of one value."""
    known: dict[tuple[str, int, int, int], Axis] = {}
    nests = list(group.nests)
    for number in range(len(nests)):
        for load in list(nests[number].loads()):
            for dim, index in enumerate(load.at):
                found = _inner_step(index, group.rows)
                if found is None:
                    continue
                axis, step = found
                other = known.setdefault((load.source, dim, step, axis.extent), axis)
                if other != axis and not any(axis in n.domain and other in n.domain for n in nests):
                    nests = [n.renamed({axis: other}) for n in nests]
                    known = {key: other if a == axis else a for key, a in known.items()}
    return replace(group, nests=tuple(nests))


def _inner_step(index: Index, rows: tuple[Axis, ...]) -> tuple[Axis, int] | None:
    """Returns the one inner loop of an index and its step, or None where there is none or there are several."""
    inner = [(atom, coef) for atom, coef in index.terms if not (isinstance(atom, Axis) and atom in rows)]
    if len(inner) != 1 or index.const:
        return None
    atom, coef = inner[0]
    return (atom, coef) if isinstance(atom, Axis) else None


def without_repeats(group: Group, stored: frozenset[str]) -> Group:
    """Returns the group without definitions that another one equals; `stored` names values that have to stay."""
    first: dict[object, str] = {}
    same: dict[str, str] = {}
    nests: list[Nest] = []
    for nest in group.nests:
        body = rewrite(nest.body, lambda load: replace(load, source=same.get(load.source, load.source)), lambda i: i)
        nest = replace(nest, body=body) if same else nest
        key = (nest.body, nest.how, nest.factors, nest.dtype, nest.shape)
        other = first.setdefault(key, nest.name)
        if (
            other != nest.name
            and nest.name not in stored
            and (other in group.crossing) == (nest.name in group.crossing)
        ):
            same[nest.name] = other
        else:
            nests.append(nest)
    return replace(group, nests=tuple(nests), crossing=group.crossing - same.keys())


def with_shared_parts(group: Group, scratch_limit_bytes: int) -> Group:
    """Returns the group with expensive parts that several definitions evaluate at the same point as definitions."""
    nests = list(group.nests)
    while True:
        part = _shared_part(group, nests, scratch_limit_bytes)
        if part is None:
            return replace(group, nests=tuple(nests))
        readers = [n for n, nest in enumerate(nests) if part in _parts(nest.body)]
        first = nests[readers[0]]
        shared = _definition(group, first, part, f"{first.name}_part{len(nests) - len(group.nests)}")
        load = Load(shared.name, shared.index(), part.dtype)
        for number in readers:
            nests[number] = replace(nests[number], body=_replaced(nests[number].body, part, load))
        nests.insert(readers[0], shared)


def _shared_part(group: Group, nests: list[Nest], limit_bytes: int) -> Expr | None:
    """Returns the largest expensive part that more than one definition has, and that fits row scratch."""
    counts: dict[Expr, int] = {}
    for nest in nests:
        if nest.name in group.crossing and not nest.domain:
            continue
        for part in set(_parts(nest.body)):
            counts[part] = counts.get(part, 0) + 1
    rows = set(group.rows)
    fitting = [
        part
        for part, count in counts.items()
        if count > 1
        and flops(part) >= _EXPENSIVE_FLOPS
        and prod(a.extent for a in _axes(part) - rows) * DTYPE_BYTES[part.dtype] <= limit_bytes
    ]
    return max(fitting, key=flops, default=None)


def _parts(expr: Expr) -> Iterator[Expr]:
    """Yields operators and casts outside guards: what may be evaluated everywhere."""
    match expr:
        case Guard(other=other):
            yield from _parts(other)
        case Apply() | Cast():
            yield expr
            for child in children(expr):
                yield from _parts(child)
        case _:
            pass


def _axes(expr: Expr) -> frozenset[Axis]:
    return frozenset(axis for index in indices(expr) for axis in index.axes())


def _definition(group: Group, reader: Nest, part: Expr, name: str) -> Nest:
    used = _axes(part)
    axes = (*group.rows, *(a for a in reader.domain if a in used and a not in group.rows))
    shape = tuple(a.extent for a in axes)
    return Nest(name, part.dtype, shape, tuple((a,) for a in axes), part, None, reader.origin)


def _replaced(expr: Expr, part: Expr, load: Load) -> Expr:
    if expr == part:
        return load
    match expr:
        case Apply(args=args):
            return replace(expr, args=tuple(_replaced(a, part, load) for a in args))
        case Cast(arg=arg):
            return replace(expr, arg=_replaced(arg, part, load))
        case Guard(other=other):
            return replace(expr, other=_replaced(other, part, load))
        case _:
            return expr


def join_siblings(first: Group, second: Group) -> Group | None:
    """Returns one group of two that do not depend on each other but read the same values at the same rows."""
    names = same_data(first, second)
    rows = tuple(b for b in second.rows if b in {names.get(a) for a in first.rows})
    first_fits, second_fits = len(rows) == len(first.rows), len(rows) == len(second.rows)
    if not rows:
        if first.rows or second.rows or first.is_plain or second.is_plain or not names:
            return None
    elif not (first_fits and second_fits) and not (
        (first_fits and second.is_plain) or (second_fits and first.is_plain)
    ):
        return None
    if rows and not (first_fits and second_fits) and (first.crossing or second.crossing):
        return None
    renamed = tuple(nest.renamed(names) for nest in first.nests)
    return Group((*renamed, *second.nests), rows, first.crossing | second.crossing)
