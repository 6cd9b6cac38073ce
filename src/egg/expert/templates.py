"""The family of operators that have a C++ template of their own: sorting and scattering along one dimension.

Loops over points can't say them: where an element goes depends on the others. Both work on slices along a dimension,
one after the other or several at a time, so to the schedule, the cost model and the printer a slice is a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

from egg.expert.loops import Array, Template
from egg.schema.graph import Arg, Node, Ref, TensorSpec, node_refs

SORTED_DTYPES = MappingProxyType(
    {
        "float64": 64, "int64": 64, "float32": 32, "int32": 32, "float16": 16, "bfloat16": 16, "int16": 16, "int8": 8,
        "uint8": 8,
    }
)  # fmt: skip
"""What can be sorted by digits, with the bits of its keys."""

DIGIT_BITS = (8, 11)
"""Bits of a digit: 256 counters fit anywhere, 2048 need fewer passes."""

_LONGEST = 2**31 - 1
"""Elements of a slice, at most: positions are kept in 32 bits while sorting."""
_PASS_FLOPS = 60
"""Work of moving one element by one digit, in additions that vectorise."""
_SCATTER_FLOPS = 40


def template_of(node: Node, specs: Mapping[str, TensorSpec], inputs: frozenset[str], number: int) -> Template | None:
    """Returns the operator as the native step with that number, or None where the family does not cover the call.

    `specs` are those of all values, `inputs` names the program's inputs: the strides of these count, other values are
    dense.
    """
    family = _FAMILIES.get(node.op)
    read = list(node_refs(node))
    if family is None or len(set(read)) < len(read) or any(v.spec is None for v in node.outputs):
        return None
    return family(_Call(node, specs, inputs, f"k{number}_{node.op.split('.')[1]}"))


def is_template(node: Node, specs: Mapping[str, TensorSpec]) -> bool:
    """Returns whether the family covers the call."""
    return template_of(node, specs, frozenset(), 0) is not None


def slices(template: Template) -> int:
    """Returns the number of slices."""
    return prod(template.loops)


def template_flops(template: Template) -> int:
    """Returns the work of all slices, in additions."""
    elements = max(a.numel for a in template.arrays)
    if template.function == "scatter":
        return elements * _SCATTER_FLOPS
    bits = SORTED_DTYPES[template.arrays[0].dtype]
    return elements * _PASS_FLOPS * (1 + -(-bits // DIGIT_BITS[-1]))


@dataclass(frozen=True)
class _Call:
    """A call with what is known of its arguments."""

    node: Node
    specs: Mapping[str, TensorSpec]
    inputs: frozenset[str]
    name: str

    def bound(self, **defaults: Arg) -> dict[str, Any]:
        """Returns the arguments by name, the first as `tensor`; `defaults` are those that may follow it, in order."""
        given = dict(zip(("tensor", *defaults), self.node.args, strict=False))
        return {**defaults, **given, **self.node.kwargs}

    def read(self, arg: Arg) -> Array | None:
        """Returns a tensor argument, or None for anything else."""
        if not isinstance(arg, Ref) or arg.ref not in self.specs:
            return None
        spec = self.specs[arg.ref]
        stride = spec.stride if arg.ref in self.inputs and spec.stride else _dense(spec.shape)
        return Array(arg.ref, spec.dtype, spec.shape, stride, "input")

    def made(self) -> tuple[Array, ...]:
        """Returns the results."""
        return tuple(
            Array(v.name, v.spec.dtype, v.spec.shape, _dense(v.spec.shape), "output")
            for v in self.node.outputs
            if v.spec is not None
        )


def _sort(call: _Call) -> Template | None:
    given = call.bound(dim=-1, descending=False)
    return _sorted(call, given["tensor"], given["dim"], bool(given["descending"]))


def _stable_sort(call: _Call) -> Template | None:
    """Every keyword but the tensor: `stable` makes no difference, as sorting by digits is always stable."""
    given = call.bound()
    return _sorted(call, given["tensor"], given.get("dim", -1), bool(given.get("descending", False)))


def _sorted(call: _Call, tensor: Arg, dim: int, descending: bool) -> Template | None:
    source = call.read(tensor)
    if source is None or source.dtype not in SORTED_DTYPES or not source.shape or not source.numel:
        return None
    along = dim % len(source.shape)
    if source.shape[along] > _LONGEST or any(not a.numel for a in call.made()):
        return None
    order = "descending" if descending else "ascending"
    doc = f"Sorts {source.name} along dimension {along}, {order}, by digits of its bits."
    return Template(call.name, "sort", call.node, (source, *call.made()), along, descending, None, doc)


def _scatter(call: _Call) -> Template | None:
    given = call.bound(dim=0, index=None, src=None)
    base, index, value = call.read(given["tensor"]), call.read(given["index"]), given.get("value", given["src"])
    if base is None or index is None or not base.shape or not base.numel or not index.numel:
        return None
    along = int(given["dim"]) % len(base.shape)
    source = call.read(value)
    if source is None and not isinstance(value, bool | int | float):
        return None
    if _across(base, along) != _across(index, along):
        return None
    arrays = (base, index, *((source,) if source is not None else ()), *call.made())
    doc = f"Copies {base.name} and stores at the positions {index.name} along dimension {along}, in order."
    return Template(
        call.name, "scatter", call.node, arrays, along, False, value if source is None else None, doc
    )  # fmt: skip


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))


def _across(array: Array, dim: int) -> tuple[int, ...]:
    return (*array.shape[:dim], *array.shape[dim + 1 :])


_FAMILIES: Mapping[str, Callable[[_Call], Template | None]] = MappingProxyType(
    {
        "aten.sort.default": _sort,
        "aten.sort.stable": _stable_sort,
        "aten.argsort.default": _sort,
        "aten.argsort.stable": _stable_sort,
        "aten.scatter.src": _scatter,
        "aten.scatter.value": _scatter,
    }
)
"""By overload name."""
