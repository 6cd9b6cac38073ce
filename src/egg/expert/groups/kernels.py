"""One group as a kernel: its arrays, its name, its loops in their final order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from egg.expert.groups.axes import merged, vectorised
from egg.expert.groups.grouping import Grouping
from egg.expert.groups.naming import kernel_doc, kernel_name, with_short_loops
from egg.expert.groups.opening import open_rows, with_lanes
from egg.expert.groups.rows import Group
from egg.expert.groups.sharing import aligned, with_shared_parts, without_repeats
from egg.expert.groups.stages import Staged, Stager, dense
from egg.expert.ir import loads
from egg.expert.loops import Array, Kernel
from egg.schema.device import Device
from egg.schema.graph import TensorSpec

_SCRATCH_SHARE = 0.5
"""Share of a core's second-level cache that row scratch may take."""

_SHARED_ROW_POINTS = 32 * 1024
"""Points of a row, at least, for several threads to share it."""


@dataclass(frozen=True)
class Context:
    """What all kernels of a layout are built with."""

    specs: Mapping[str, TensorSpec]
    """Of values that come from outside a kernel; strides of program inputs count."""
    inputs: frozenset[str]
    """Names of the program's inputs."""
    choice: Grouping
    device: Device

    @property
    def scratch_limit_bytes(self) -> int:
        """Bytes that the scratch of one row may take."""
        return int(self.device.l2_bytes * _SCRATCH_SHARE)


def kernel_of(group: Group, number: int, written: frozenset[str], context: Context) -> Kernel:
    """Returns the kernel of a group; `written` names the values that have to reach memory."""
    group = without_repeats(aligned(group), written)
    if context.choice.mapping != "inner":
        group = open_rows(group)
    if context.choice.keep != "recompute":
        group = with_shared_parts(group, context.scratch_limit_bytes)
    staged = Stager(group, written, context.choice.keep, context.scratch_limit_bytes).run()
    kernel = Kernel(
        name=kernel_name(group, number),
        rows=group.rows,
        stages=staged.stages,
        tail=staged.tail,
        arrays=_arrays(group, staged, written, context),
    )
    kernel = with_short_loops(with_lanes(merged(vectorised(kernel, context.choice.vector))))
    return replace(kernel, mapping=_mapping(kernel, context), doc=kernel_doc(kernel))


def _mapping(kernel: Kernel, context: Context) -> Literal["rows", "inner"]:
    """Returns what runs in parallel: the rows, unless they are fewer than cores and long enough to be shared."""
    if kernel.columns is not None or not any(stage.order for stage in kernel.stages):
        return "rows"
    if context.choice.mapping != "auto":
        return context.choice.mapping
    rows = prod(a.extent for a in kernel.rows)
    longest = max(prod(a.extent for a in stage.order) for stage in kernel.stages)
    return "inner" if rows < context.device.cores and longest >= _SHARED_ROW_POINTS else "rows"


def _arrays(group: Group, staged: Staged, written: frozenset[str], context: Context) -> tuple[Array, ...]:
    local = {a.name for a in staged.scratch} | group.names
    read = dict.fromkeys(
        load.source
        for stage in (*staged.stages, *staged.tail)
        for compute in stage.computes
        for load in loads(compute.body)
        if load.source not in local
    )
    inputs = [_input(name, context.specs[name], name in context.inputs) for name in read]
    outputs = [
        Array(n.name, n.dtype, n.shape, dense(n.shape), "output")
        for n in group.nests
        if n.name in written or n.name in staged.spilled
    ]
    return (*inputs, *outputs, *staged.scratch)


def _input(name: str, spec: TensorSpec, strided: bool) -> Array:
    stride = spec.stride if strided and spec.stride else dense(spec.shape)
    return Array(name, spec.dtype, spec.shape, stride, "input")
