"""Loop changes that keep the meaning: loops of one step dropped, neighbours joined, a divided lane axis split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from egg.expert.index import Axis, Index, Quotient, Remainder, axis_index, divide, modulo
from egg.expert.ir import Apply, Cast, Expr, Guard, Load, Position, Reduce, Scan, rewrite, walk
from egg.expert.loops import Array, Compute, Kernel, Stage, Store

Arrays = Mapping[str, Array]

_WIDE_ENOUGH = 16


def simplified(kernel: Kernel) -> Kernel:
    """Returns the same kernel with simpler stages."""
    arrays = {a.name: a for a in kernel.arrays}
    stages = tuple(_stage(s, arrays, kernel.columns is None) for s in kernel.stages)
    return replace(kernel, stages=stages, tail=tuple(_stage(s, arrays, True) for s in kernel.tail))


def _stage(stage: Stage, arrays: Arrays, lanes: bool) -> Stage:
    stage = _without_single_steps(stage)
    stage = _joined(stage, arrays)
    return _split_lane(stage, arrays) if lanes else stage


def _without_single_steps(stage: Stage) -> Stage:
    """Drops loops of one step that nothing is reduced or scanned along."""
    used: set[Axis] = set()
    for compute in stage.computes:
        match compute.how:
            case Reduce(axes=axes):
                used.update(axes)
            case Scan(axis=axis):
                used.add(axis)
            case None:
                pass
    return replace(stage, order=tuple(a for a in stage.order if a.extent != 1 or a in used))


def _joined(stage: Stage, arrays: Arrays) -> Stage:
    """Joins neighbouring loops where every index stays free of divisions by it."""
    for number in range(len(stage.order) - 2, -1, -1):
        outer, inner = stage.order[number : number + 2]
        if any(isinstance(c.how, Scan) and c.how.axis in (outer, inner) for c in stage.computes):
            continue
        if any(not _both_or_none(c, outer, inner) for c in stage.computes):
            continue
        whole = Axis(f"{outer.name}_{inner.name}", outer.extent * inner.extent)
        by = {
            outer: divide(axis_index(whole), inner.extent),
            inner: modulo(axis_index(whole), inner.extent),
        }
        joined = _substituted(stage, by, (outer, inner), (whole,))
        if not any(_divides(i, whole) for i in _indices(joined, arrays)):
            return _joined(joined, arrays)
    return stage


def _both_or_none(compute: Compute, outer: Axis, inner: Axis) -> bool:
    if not isinstance(compute.how, Reduce):
        return True
    axes = compute.how.axes
    if (outer in axes) != (inner in axes):
        return False
    return outer not in axes or axes.index(outer) + 1 == axes.index(inner)


def _split_lane(stage: Stage, arrays: Arrays) -> Stage:
    """Splits the lane axis where indices divide it by a width that is worth a vector loop."""
    if not stage.order:
        return stage
    lane = stage.order[-1]
    if any(isinstance(c.how, Scan) and c.how.axis == lane for c in stage.computes):
        return stage
    widths = sorted(set(_divisors(_indices(stage, arrays), lane)))
    for width in widths:
        if width < _WIDE_ENOUGH or lane.extent % width or width >= lane.extent:
            continue
        outer, inner = Axis(f"{lane.name}_outer", lane.extent // width), Axis(f"{lane.name}_inner", width)
        by = {lane: axis_index(outer) * width + axis_index(inner)}
        split = _substituted(stage, by, (lane,), (outer, inner))
        if not any(_divides(i, inner) for i in _indices(split, arrays)):
            return split
    return stage


def _substituted(stage: Stage, by: Mapping[Axis, Index], old: tuple[Axis, ...], new: tuple[Axis, ...]) -> Stage:
    at = stage.order.index(old[0])
    order = (*stage.order[:at], *new, *stage.order[at + len(old) :])
    return Stage(order, tuple(_compute(c, by, old, new) for c in stage.computes))


def _compute(compute: Compute, by: Mapping[Axis, Index], old: tuple[Axis, ...], new: tuple[Axis, ...]) -> Compute:
    how = compute.how
    if isinstance(how, Reduce) and old[0] in how.axes:
        at = how.axes.index(old[0])
        how = replace(how, axes=(*how.axes[:at], *new, *how.axes[at + len(old) :]))
    body = rewrite(compute.body, lambda load: load, lambda index: index.substitute(by))
    stores = tuple(Store(s.array, tuple(i.substitute(by) for i in s.at)) for s in compute.stores)
    return replace(compute, body=body, how=how, stores=stores)


def _indices(stage: Stage, arrays: Arrays) -> Iterator[Index]:
    """Yields the position of every load and store in memory, and every other index."""
    for compute in stage.computes:
        for store in compute.stores:
            yield _offset(arrays[store.array], store.at)
        for part in walk(compute.body):
            yield from _own_indices(part, arrays)


def _offset(array: Array, at: Sequence[Index]) -> Index:
    total = Index()
    for index, stride in zip(at, array.stride, strict=True):
        total = total + index * stride
    return total


def _own_indices(part: Expr, arrays: Arrays) -> Sequence[Index]:
    match part:
        case Load(source=source, at=at):
            return (_offset(arrays[source], at),) if at else ()
        case Position(index=index):
            return (index,)
        case Guard(bounds=bounds):
            return tuple(b.index for b in bounds)
        case Apply() | Cast() | _:
            return ()


def _divisors(indices: Iterable[Index], axis: Axis) -> Iterator[int]:
    for index in indices:
        for atom in index.atoms():
            if isinstance(atom, Quotient | Remainder) and axis in atom.index.axes():
                yield atom.divisor


def _divides(index: Index, axis: Axis) -> bool:
    return next(_divisors((index,), axis), None) is not None
