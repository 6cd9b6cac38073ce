"""One group as a kernel: its arrays, its name, its loops in their final order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from egg.expert.groups.axes import merged, vectorised
from egg.expert.groups.grouping import Grouping
from egg.expert.groups.joining import Group
from egg.expert.groups.opening import open_rows
from egg.expert.groups.stages import Staged, Stager, dense
from egg.expert.ir import Reduce, Scan, loads
from egg.expert.loops import Array, Compute, Kernel, Stage
from egg.schema.device import Device
from egg.schema.graph import TensorSpec

_SCRATCH_SHARE = 0.5
"""Share of a core's second-level cache that row scratch may take."""
_NAME_PARTS = 3


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


def kernel_of(group: Group, number: int, written: frozenset[str], context: Context) -> tuple[Kernel, frozenset[str]]:
    """Returns the kernel of a group, and the names of values that only this kernel passes through memory."""
    group = open_rows(group)
    staged = Stager(group, written, context.choice.keep, context.scratch_limit_bytes).run()
    kernel = Kernel(
        name=_name(group, number),
        rows=group.rows,
        stages=staged.stages,
        tail=staged.tail,
        arrays=_arrays(group, staged, written, context),
        doc=_doc(group, staged),
    )
    kernel = merged(vectorised(kernel, context.choice.vector))
    return kernel, staged.spilled


def _arrays(group: Group, staged: Staged, written: frozenset[str], context: Context) -> tuple[Array, ...]:
    local = {a.name for a in staged.scratch} | group.names
    own = {nest.name: TensorSpec(shape=nest.shape, dtype=nest.dtype) for nest in group.nests}
    read = dict.fromkeys(
        load.source
        for stage in (*staged.stages, *staged.tail)
        for compute in stage.computes
        for load in loads(compute.body)
        if load.source not in local
    )
    inputs = [_array(name, context.specs[name], "input", name in context.inputs) for name in read]
    outputs = [
        Array(n.name, n.dtype, n.shape, dense(n.shape), "output")
        for n in group.nests
        if n.name in written or n.name in staged.spilled
    ]
    assert own
    return (*inputs, *outputs, *staged.scratch)


def _array(name: str, spec: TensorSpec, place: str, strided: bool) -> Array:
    stride = spec.stride if strided and spec.stride else dense(spec.shape)
    return Array(name, spec.dtype, spec.shape, stride, "input")


def _name(group: Group, number: int) -> str:
    parts = dict.fromkeys(
        re.sub(r"_\d+$", "", origin) for nest in group.nests for origin in nest.origin or (nest.name,)
    )
    words = [re.sub(r"\W", "_", part) for part in parts]
    shown = words if len(words) <= _NAME_PARTS else [*words[: _NAME_PARTS - 1], words[-1]]
    return "_".join((f"k{number}", *shown))


def _doc(group: Group, staged: Staged) -> str:
    """Returns what is fused, stage by stage."""
    rows = ", ".join(f"{a.name} < {a.extent}" for a in group.rows)
    lines = [f"For each row ({rows})." if rows else "One row."]
    lines += [f"{_stage_doc(stage)}." for stage in staged.stages]
    lines += [f"After the last row: {_stage_doc(stage)}." for stage in staged.tail]
    return "\n".join(lines)


def _stage_doc(stage: Stage) -> str:
    loops = ", ".join(f"{a.name} < {a.extent}" for a in stage.order)
    values = ", ".join(_compute_doc(c) for c in stage.computes)
    return f"Over {loops}: {values}" if loops else values[:1].upper() + values[1:]


def _compute_doc(compute: Compute) -> str:
    match compute.how:
        case Reduce(kind=kind, axes=axes):
            return f"{compute.name} = {kind} over {', '.join(a.name for a in axes)}"
        case Scan(kind=kind, axis=axis):
            return f"{compute.name} = running {kind} along {axis.name}"
        case _:
            return compute.name


def row_count(kernel: Kernel) -> int:
    """Returns the number of rows, columns included."""
    return prod(a.extent for a in kernel.rows)


def stage_points(stages: Sequence[Stage]) -> int:
    """Returns the evaluations of all stages for one row."""
    return sum(prod(a.extent for a in stage.order) for stage in stages)
