"""Readable names for loops and kernels, and the words above a kernel's code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from egg.expert.groups.axes import mapped
from egg.expert.groups.rows import Group
from egg.expert.index import Axis, axis_index
from egg.expert.ir import Reduce, Scan
from egg.expert.loops import Compute, Kernel, Stage

_NAME_PARTS = 3


def with_short_loops(kernel: Kernel) -> Kernel:
    """Returns the kernel with rows named `i`, the columns `c` and inner loops `j`, numbered where there are several."""
    rows = tuple(r for r in kernel.rows if r != kernel.columns)
    inner = tuple(dict.fromkeys(a for stage in kernel.stages for a in stage.order))
    names = dict(_numbered("i", rows)) | dict(_numbered("j", inner))
    if kernel.columns is not None:
        names[kernel.columns] = Axis("c", kernel.columns.extent)
    by = {old: axis_index(new) for old, new in names.items()}
    columns = names[kernel.columns] if kernel.columns is not None else None
    return mapped(kernel, lambda i: i.substitute(by), lambda axes: tuple(names[a] for a in axes), columns)


def _numbered(letter: str, axes: tuple[Axis, ...]) -> Iterator[tuple[Axis, Axis]]:
    for number, axis in enumerate(axes):
        yield axis, Axis(letter if len(axes) == 1 else f"{letter}{number}", axis.extent)


def kernel_name(group: Group, number: int) -> str:
    """Returns an identifier that tells what the kernel fuses: `k0_layer_norm_gelu`.

    No two underscores follow each other, as C++ keeps such names to itself and the printer would change them.
    """
    origins = (origin for nest in group.nests for origin in nest.origin or (nest.name,))
    words = list(dict.fromkeys(_word(origin) for origin in origins))
    shown = words if len(words) <= _NAME_PARTS else [*words[: _NAME_PARTS - 1], words[-1]]
    return "_".join((f"k{number}", *shown))


def _word(origin: str) -> str:
    without_number = re.sub(r"_\d+$", "", origin)
    return re.sub(r"[\W_]+", "_", without_number).strip("_")


def kernel_doc(kernel: Kernel) -> str:
    """Returns what the kernel does, stage by stage."""
    rows = ", ".join(f"{a.name} < {a.extent}" for a in kernel.rows)
    lines = [f"For each row ({rows}):" if rows else "Once:"]
    lines += [f"- {_stage_doc(stage)}" for stage in kernel.stages]
    lines += [f"- after the last row: {_stage_doc(stage)}" for stage in kernel.tail]
    return "\n".join(lines)


def _stage_doc(stage: Stage) -> str:
    loops = ", ".join(f"{a.name} < {a.extent}" for a in stage.order)
    values = "; ".join(_compute_doc(c) for c in stage.computes)
    return f"over {loops}: {values}" if loops else values


def _compute_doc(compute: Compute) -> str:
    match compute.how:
        case Reduce(kind=kind, axes=axes):
            return f"{compute.name} = {kind} over {', '.join(a.name for a in axes)}"
        case Scan(kind=kind, axis=axis):
            return f"{compute.name} = running {kind} along {axis.name}"
        case _:
            return compute.name
