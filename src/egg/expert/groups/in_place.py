"""Kernels that write over the result of a product or convolution which nothing else needs: one buffer less to touch.

A result of such a call is new memory of its own. Where one kernel alone reads it, row by row, and writes a value of the
same layout, each element can go where the element was that it was made from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from egg.expert.index import Axis, Fetch, Index
from egg.expert.ir import Expr, Library, Load, Program, loads, rewrite
from egg.expert.loops import Array, Compute, Kernel, Stage, Step, read_names
from egg.schema.graph import tree_refs

ANCHOR = "anchor"
"""Reason of a library statement that always makes new memory."""


def in_place(steps: Sequence[Step], program: Program) -> tuple[Step, ...]:
    """Returns the steps with every output that may be `over` a library result marked so, and that result unread."""
    made = frozenset(s.name for s in steps if isinstance(s, Library) and s.reason == ANCHOR)
    readers = Counter(name for step in steps for name in read_names(step))
    readers.update((*tree_refs(program.returns), *(n for m in program.mutations for n in (m.value, m.target))))
    free = frozenset(name for name in made if readers[name] == 1)
    changed = frozenset(m.value for m in program.mutations)
    return tuple(_written_over(s, free, changed) if isinstance(s, Kernel) else s for s in steps)


def _written_over(kernel: Kernel, free: frozenset[str], changed: frozenset[str]) -> Kernel:
    """Returns the kernel with outputs over results that it alone reads; those in `changed` have a place already."""
    for source in kernel.arrays:
        if source.name not in free or source.place != "input":
            continue
        for target in kernel.arrays:
            if target.place != "output" or target.over or target.name in changed or not _same_layout(source, target):
                continue
            if _elements_agree(kernel, source.name, target.name):
                return _written_over(_merged(kernel, source, target), free, changed)
    return kernel


def _same_layout(one: Array, two: Array) -> bool:
    return (one.dtype, one.shape, one.stride) == (two.dtype, two.shape, two.stride)


def _elements_agree(kernel: Kernel, source: str, target: str) -> bool:
    """Returns whether every element of the source is read before it is written over, and in its own row alone."""
    stores = [
        (number, position, store.at, compute.how)
        for number, stage in enumerate((*kernel.stages, *kernel.tail))
        for position, compute in enumerate(stage.computes)
        for store in compute.stores
        if store.array == target
    ]
    if len(stores) != 1 or any(load.source in (source, target) for s in kernel.tail for load in _loads(s)):
        return False
    ((last, at_position, written, how),) = stores
    if how is not None or last >= len(kernel.stages):
        return False
    rows = frozenset(kernel.rows)
    for number, stage in enumerate(kernel.stages):
        for position, compute in enumerate(stage.computes):
            for load in loads(compute.body):
                if load.source == target or (load.source == source and isinstance(load, Fetch)):
                    return False
                if load.source != source:
                    continue
                same = load.at == written and (number, position) <= (last, at_position)
                if not same and not (number < last and _in_row(load.at, written, rows)):
                    return False
    return True


def _loads(stage: Stage) -> Iterator[Load | Fetch]:
    for compute in stage.computes:
        yield from loads(compute.body)


def _in_row(read: tuple[Index, ...], written: tuple[Index, ...], rows: frozenset[Axis]) -> bool:
    """Returns whether two elements belong to the same row: where an index depends on the row, it is the same one."""
    return all(one == two or not (rows & (one.axes() | two.axes())) for one, two in zip(read, written, strict=True))


def _merged(kernel: Kernel, source: Array, target: Array) -> Kernel:
    """Returns the kernel with one array for both."""

    def renamed(load: Load) -> Expr:
        return replace(load, source=target.name) if load.source == source.name else load

    def body(compute: Compute) -> Compute:
        return replace(compute, body=rewrite(compute.body, renamed, lambda index: index))

    stages = tuple(replace(s, computes=tuple(map(body, s.computes))) for s in kernel.stages)
    arrays = tuple(replace(a, over=source.name) if a is target else a for a in kernel.arrays if a is not source)
    return replace(kernel, stages=stages, arrays=arrays)
