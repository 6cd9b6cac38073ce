"""Large outputs of a kernel: which get new pages from the system, and which may be written past the caches."""

from __future__ import annotations

from egg.expert.index import Axis, Index
from egg.expert.ir import loads
from egg.expert.loops import Array, Kernel, Stage, Store
from egg.schema.device import Device
from egg.schema.graph import DTYPE_BYTES

FRESH_BYTES = 32 * 2**20
"""Above this an allocator takes new pages from the system for every tensor, and gives them back: glibc's largest
threshold."""
_STORE_BYTES = 32
"""Bytes of one store past the caches; it has to start at a multiple of itself."""
_CACHE_SHARE = 0.5
"""Of the last-level cache: an output below this share of it may still be there when it is read."""
_DTYPES = ("float32", "float64", "int32", "int64")
"""Elements that fill vectors without conversion."""


def large_results(kernel: Kernel, device: Device, read_later: frozenset[str]) -> tuple[Array, ...]:
    """Returns the outputs that later steps leave alone and that the last-level cache can't hold beside what is read."""
    limit = _CACHE_SHARE * device.l3_bytes
    return tuple(
        a
        for a in kernel.arrays
        if a.place == "output" and not a.over and a.name not in read_later and bytes_of(a) > limit
    )


def is_fresh(nbytes: int) -> bool:
    """Returns whether a tensor of so many bytes gets pages that were never touched."""
    return nbytes > FRESH_BYTES


def streamable(kernel: Kernel) -> tuple[Array, ...]:
    """Returns the outputs whose vectors lie side by side from an aligned start in every row, and that it never reads.

    A kernel whose rows are shared by threads writes none of its outputs so.
    """
    stages = (*kernel.stages, *kernel.tail)
    read = {load.source for s in stages for c in s.computes for load in loads(c.body) if load.at}
    outputs = {a.name: a for a in kernel.arrays if a.place == "output"}
    if kernel.mapping == "inner" or read & outputs.keys():
        return ()
    whole = dict.fromkeys(outputs, False)
    for stage in kernel.stages:
        for compute in stage.computes:
            for store in compute.stores:
                if store.array in outputs:
                    whole[store.array] = compute.how is None and _is_whole(outputs[store.array], store, kernel, stage)
    return tuple(a for name, a in outputs.items() if whole[name])


def _is_whole(array: Array, store: Store, kernel: Kernel, stage: Stage) -> bool:
    lane = kernel.columns or (stage.order[-1] if stage.order else None)
    if lane is None or array.dtype not in _DTYPES:
        return False
    offset = Index()
    for index, stride in zip(store.at, array.stride, strict=True):
        offset = offset + index * stride
    width = DTYPE_BYTES[array.dtype]
    steps = {atom: coefficient for atom, coefficient in offset.terms if isinstance(atom, Axis)}
    others = (coefficient * width for axis, coefficient in steps.items() if axis != lane)
    return (
        len(steps) == len(offset.terms)
        and steps.get(lane) == 1
        and offset.const * width % _STORE_BYTES == 0
        and all(step % _STORE_BYTES == 0 for step in others)
    )


def bytes_of(array: Array) -> int:
    """Returns the bytes of all elements."""
    return array.numel * DTYPE_BYTES[array.dtype]
