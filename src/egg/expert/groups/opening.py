"""Reductions to a single value get rows: the loops they reduce, each thread keeping a partial result."""

from __future__ import annotations

from dataclasses import replace

from egg.expert.groups.axes import mapped
from egg.expert.groups.nests import Nest, split_loop
from egg.expert.groups.rows import Group
from egg.expert.index import Axis, axis_index
from egg.expert.ir import Reduce
from egg.expert.loops import Kernel

_INNER = range(256, 16385)
"""Lengths of the part of a single long loop that one row takes."""
_GOOD = 4096


def open_rows(group: Group) -> Group:
    """Returns the group with rows where it had none but all its reductions run over the same loops, side by side."""
    if group.rows:
        return group
    reductions = [nest for nest in group.nests if isinstance(nest.how, Reduce)]
    if not reductions or any(nest.kept for nest in group.nests):
        return group
    if any(nest.how is not None and not isinstance(nest.how, Reduce) for nest in group.nests):
        return group
    names = {nest.name for nest in reductions}
    first = reductions[0]
    alike = all(set(nest.reduced) == set(first.reduced) for nest in reductions)
    later = _after(group, names)
    if not alike or any(later & nest.sources for nest in reductions):
        return group
    if any(isinstance(n.how, Reduce) and n.how.kind in ("argmax", "argmin") for n in reductions):
        return group
    if any(nest.name not in later for nest in group.nests):
        return group
    group = _with_two_loops(group, first)
    axes = next(n for n in group.nests if n.name == first.name).reduced
    return replace(group, rows=axes[:-1] if len(axes) > 1 else axes, crossing=group.names)


def with_lanes(kernel: Kernel) -> Kernel:
    """Returns a kernel whose rows are single elements with longer rows: these have a loop to vectorise."""
    if kernel.columns is not None or len(kernel.stages) != 1 or kernel.stages[0].order or not kernel.rows:
        return kernel
    computes = kernel.stages[0].computes
    if any(c.how is not None and not isinstance(c.how, Reduce) for c in computes):
        return kernel
    if any(isinstance(c.how, Reduce) and c.how.kind in ("argmax", "argmin") for c in computes):
        return kernel
    axis = kernel.rows[-1]
    inner = _divisor(axis.extent)
    if inner is None:
        return kernel
    outer, lane = Axis(f"{axis.name}_outer", axis.extent // inner), Axis(f"{axis.name}_inner", inner)
    by = {axis: axis_index(outer) * inner + axis_index(lane)}

    def axes(old: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(new for a in old for new in ((outer, lane) if a == axis else (a,)))

    split = mapped(kernel, lambda index: index.substitute(by), axes, None)
    rows = tuple(a for a in split.rows if a != lane)
    return replace(split, rows=rows, stages=(replace(split.stages[0], order=(lane,)),))


def _after(group: Group, names: set[str]) -> set[str]:
    """Returns the names of the reductions and of all that depends on them."""
    found = set(names)
    for nest in group.nests:
        if found & set(nest.sources):
            found.add(nest.name)
    return found


def _with_two_loops(group: Group, first: Nest) -> Group:
    """Returns the group with its single loop cut in two, where a good length divides it."""
    if len(first.reduced) != 1:
        return group
    axis = first.reduced[0]
    inner = _divisor(axis.extent)
    if inner is None:
        return group
    return replace(group, nests=tuple(split_loop(n, axis, inner) if axis in n.domain else n for n in group.nests))


def _divisor(extent: int) -> int | None:
    found = [n for n in _INNER if extent % n == 0 and extent // n >= 8]
    return min(found, key=lambda n: abs(n - _GOOD)) if found else None
