"""Which loop of a kernel is the vectorised one, in which order the others stand, and which of them merge."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod

from egg.expert.index import Axis, Fetch, Index, axis_index, divide, modulo
from egg.expert.ir import Expr, Guard, Load, Position, Reduce, Scan, loads, rewrite, walk
from egg.expert.loops import Array, Compute, Kernel, Stage, Store
from egg.schema.graph import DTYPE_BYTES

_LONG = 16
"""A vectorised loop of this length uses the vector units well; shorter ones in proportion."""
_STEP_VALUE = {0: 1.0, 1: 1.0, -1: 0.8, 2: 0.5, 3: 0.35, 4: 0.3}
"""How good a vector access with this step is, in elements; other steps and gathers are `_SCATTERED`."""
_SCATTERED = 0.08
_SEQUENTIAL = 0.3
"""How much of the vector units a scan along the vectorised loop can use."""


@dataclass(frozen=True)
class Access:
    """One read or write of memory in a stage."""

    offset: Index
    bytes: int
    """Of one element."""
    points: int
    """Executions."""


def accesses(kernel: Kernel, stage: Stage) -> list[Access]:
    """Returns reads and writes of memory in a stage; those of row scratch are left out."""
    arrays = {a.name: a for a in kernel.arrays if a.place != "scratch"}
    points = prod(a.extent for a in (*kernel.rows, *stage.order))
    return [
        Access(offset(arrays[name], at), DTYPE_BYTES[arrays[name].dtype], points)
        for name, at in _touched(stage)
        if name in arrays and len(at) == len(arrays[name].shape)
    ]


def offset(array: Array, at: tuple[Index, ...]) -> Index:
    """Returns the position in elements of an element of an array."""
    total = Index()
    for index, stride in zip(at, array.stride, strict=True):
        total = total + index * stride
    return total


def _touched(stage: Stage) -> Iterator[tuple[str, tuple[Index, ...]]]:
    for compute in stage.computes:
        for load in loads(compute.body):
            yield load.source, load.at
        for store in compute.stores:
            yield store.array, store.at


def vectorised(kernel: Kernel, wish: str) -> Kernel:
    """Returns the kernel with the best loop last: the last of each stage, or one of the rows as `columns`."""
    inner = sum(max((_value(kernel, s, a) for a in s.order), default=0.0) for s in kernel.stages)
    by_row = {r: sum(_value(kernel, s, r) for s in kernel.stages) for r in kernel.rows}
    crossing = bool(kernel.tail) or any(
        set(c.how.axes) & set(kernel.rows) for s in kernel.stages for c in s.computes if isinstance(c.how, Reduce)
    )
    best = max(by_row, key=lambda r: by_row[r], default=None)
    loops = any(stage.order for stage in kernel.stages)
    columns = best is not None and not crossing and (by_row[best] > inner or not loops or wish == "columns")
    if loops and wish == "inner":
        columns = False
    lane = best if columns else None
    stages = tuple(replace(s, order=_ordered(kernel, s, lane is None)) for s in kernel.stages)
    rows = _heavy_first(kernel, _by_step(kernel, kernel.rows, kernel.stages))
    if lane is not None:
        rows = (*(r for r in rows if r != lane), lane)
    return replace(kernel, rows=rows, stages=stages, columns=lane)


def _value(kernel: Kernel, stage: Stage, axis: Axis) -> float:
    """Returns how much memory traffic of a stage a vectorised `axis` serves well, in bytes."""
    total = 0.0
    for access in accesses(kernel, stage):
        step = access.offset.coefficient(axis)
        value = _SCATTERED if step is None else _STEP_VALUE.get(step, _SCATTERED)
        total += access.bytes * access.points * value
    total *= min(axis.extent, _LONG) / _LONG
    if any(isinstance(c.how, Scan) and c.how.axis == axis for c in stage.computes):
        total *= _SEQUENTIAL
    return total


def _ordered(kernel: Kernel, stage: Stage, lane_inside: bool) -> tuple[Axis, ...]:
    """Returns the loops of a stage: a scanned one last, else the best vectorised one, the rest by falling steps."""
    order = _by_step(kernel, stage.order, (stage,))
    fixed = [c.how for c in stage.computes if isinstance(c.how, Reduce) and c.how.kind in ("argmax", "argmin")]
    if fixed:
        reduced = fixed[0].axes
        order = (*(a for a in order if a not in reduced), *reduced)
        return order
    scanned = [c.how.axis for c in stage.computes if isinstance(c.how, Scan)]
    if scanned:
        last = scanned[0]
    elif lane_inside and order:
        last = max(order, key=lambda a: (_value(kernel, stage, a), order.index(a)))
    else:
        return order
    return (*(a for a in order if a != last), last)


def _by_step(kernel: Kernel, axes: tuple[Axis, ...], stages: tuple[Stage, ...]) -> tuple[Axis, ...]:
    """Returns the axes with the largest memory steps first."""

    def step(axis: Axis) -> float:
        total = weight = 0.0
        for stage in stages:
            for access in accesses(kernel, stage):
                coef = access.offset.coefficient(axis)
                if coef is not None and coef != 0:
                    total += abs(coef) * access.points
                    weight += access.points
        return total / weight if weight else float("inf")

    return tuple(sorted(axes, key=lambda a: -step(a)))


def _heavy_first(kernel: Kernel, rows: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Returns the rows with those last that the large arrays do not depend on: then what is read stays for them."""
    sizes = {a.name: a.numel * DTYPE_BYTES[a.dtype] for a in kernel.arrays if a.place != "scratch"}
    bytes_of = dict.fromkeys(rows, 0)
    touched = {(name, axis) for s in kernel.stages for name, at in _touched(s) for i in at for axis in i.axes()}
    for name, axis in touched:
        if axis in bytes_of:
            bytes_of[axis] += sizes.get(name, 0)
    largest = max(bytes_of.values(), default=0)
    return tuple(sorted(rows, key=lambda axis: 2 * bytes_of[axis] < largest))


def merged(kernel: Kernel) -> Kernel:
    """Returns the kernel with neighbouring loops merged wherever memory sees them as one."""
    changed = True
    while changed:
        changed = False
        for outer, inner in _neighbours(kernel):
            if _can_merge(kernel, outer, inner):
                kernel = _merge(kernel, outer, inner)
                changed = True
                break
    return kernel


def _neighbours(kernel: Kernel) -> Iterator[tuple[Axis, Axis]]:
    for axes in (kernel.rows, *(s.order for s in kernel.stages)):
        yield from reversed(list(itertools.pairwise(axes)))


def _can_merge(kernel: Kernel, outer: Axis, inner: Axis) -> bool:
    orders = [kernel.rows, *(s.order for s in kernel.stages)]
    for axes in orders:
        if (outer in axes) != (inner in axes):
            return False
        if outer in axes and axes.index(inner) != axes.index(outer) + 1:
            return False
    for stage in (*kernel.stages, *kernel.tail):
        for compute in stage.computes:
            if not _merges_in(kernel, compute, outer, inner):
                return False
    return True


def _merges_in(kernel: Kernel, compute: Compute, outer: Axis, inner: Axis) -> bool:
    how = compute.how
    if isinstance(how, Scan) and how.axis in (outer, inner):
        return False
    if isinstance(how, Reduce):
        if (outer in how.axes) != (inner in how.axes):
            return False
        ordered = how.kind in ("argmax", "argmin") and outer in how.axes
        if ordered and how.axes.index(inner) != how.axes.index(outer) + 1:
            return False
    arrays = {a.name: a for a in kernel.arrays}
    offsets = [
        offset(arrays[load.source], load.at)
        for load in loads(compute.body)
        if load.source in arrays and len(load.at) == len(arrays[load.source].shape)
    ]
    offsets += [offset(arrays[s.array], s.at) for s in compute.stores]
    return all(_is_whole(index, outer, inner) for index in (*offsets, *_numbers(compute.body)))


def _numbers(body: Expr) -> Iterator[Index]:
    """Yields the indices that are used as numbers: positions and bounds."""
    for part in walk(body):
        match part:
            case Position(index=index):
                yield index
            case Guard(bounds=bounds):
                yield from (bound.index for bound in bounds)
            case _:
                pass


def _is_whole(index: Index, outer: Axis, inner: Axis) -> bool:
    """Returns whether the index sees the two loops as one; what it fetches is judged by the fetch's own offset."""
    own = Index(tuple(term for term in index.terms if not isinstance(term[0], Fetch)), index.const)
    step_out, step_in = own.coefficient(outer), own.coefficient(inner)
    return step_out is not None and step_in is not None and step_out == step_in * inner.extent


def _merge(kernel: Kernel, outer: Axis, inner: Axis) -> Kernel:
    both = Axis(f"{outer.name}_{inner.name}", outer.extent * inner.extent)
    position = axis_index(both)
    by = {outer: divide(position, inner.extent), inner: modulo(position, inner.extent)}

    def axes(old: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(both if a == outer else a for a in old if a != inner)

    columns = both if kernel.columns == inner else kernel.columns
    return mapped(kernel, lambda index: index.substitute(by), axes, columns)


def mapped(
    kernel: Kernel,
    index: Callable[[Index], Index],
    axes: Callable[[tuple[Axis, ...]], tuple[Axis, ...]],
    columns: Axis | None,
) -> Kernel:
    """Returns the kernel with every index and every list of loops replaced."""

    def keep(load: Load) -> Load:
        return load

    def compute(old: Compute) -> Compute:
        how = old.how
        if isinstance(how, Reduce):
            how = replace(how, axes=axes(how.axes))
        elif isinstance(how, Scan):
            how = replace(how, axis=axes((how.axis,))[0])
        stores = tuple(Store(s.array, tuple(index(i) for i in s.at)) for s in old.stores)
        return replace(old, body=rewrite(old.body, keep, index), how=how, stores=stores)

    def stage(old: Stage) -> Stage:
        return Stage(axes(old.order), tuple(compute(c) for c in old.computes))

    return replace(
        kernel,
        rows=axes(kernel.rows),
        stages=tuple(stage(s) for s in kernel.stages),
        tail=tuple(stage(s) for s in kernel.tail),
        columns=columns,
    )
