"""The exported operator graph as a frozen, serialisable value.

It is what `analysis` produces and what the built-in author rewrites: a flat list of ATen calls in
topological order, with parameters lifted to names. No room needs torch to read it.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field
from typing_extensions import TypeAliasType

from egg.schema.base import Record

DTYPE_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
"""Bytes of one element of each dtype that the house knows."""


class TensorSpec(Record):
    """Shape, dtype and strides of a tensor."""

    shape: tuple[int, ...]
    """Extents in elements; empty for a 0-dim tensor."""
    dtype: str
    """Name without the `torch.` prefix, such as `float32`."""
    stride: tuple[int, ...] = ()
    """Strides in elements, one for each dimension; empty means contiguous."""

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of all elements, each counted once."""
        return self.numel * DTYPE_BYTES.get(self.dtype, 8)


class Ref(Record):
    """A use of a value of the graph by its name."""

    ref: str


class Symbol(Record):
    """A literal argument that is not a number or a string."""

    kind: Literal["dtype", "device", "layout", "memory_format"]
    text: str
    """The name without the `torch.` prefix: `bfloat16`, `cpu`, `strided`, `contiguous_format`."""


if TYPE_CHECKING:  # checkers know recursive aliases in this form only, pydantic in the other
    Arg: TypeAlias = "Ref | Symbol | bool | int | float | str | tuple[Arg, ...] | None"
else:
    Arg = TypeAliasType("Arg", "Ref | Symbol | bool | int | float | str | tuple[Arg, ...] | None")
"""An argument of an operator."""


class Value(Record):
    """A named result of a node."""

    name: str
    spec: TensorSpec | None
    """None where the result is not a tensor."""


class Node(Record):
    """One call of an operator."""

    op: str
    """Overload name as torch prints it: `aten.add.Tensor`."""
    args: tuple[Arg, ...] = ()
    kwargs: dict[str, Arg] = Field(default_factory=dict)
    outputs: tuple[Value, ...]
    """One for a single result; several for a tuple of results, in order."""

    @property
    def name(self) -> str:
        """The name of the first result, which identifies the node."""
        return self.outputs[0].name


class GraphInput(Record):
    """A tensor that enters the graph."""

    name: str
    kind: Literal["input", "parameter", "buffer", "constant"]
    path: tuple[str | int, ...]
    """For `input`: where the leaf sits in `(args, kwargs)`: `(0, "x")` is `args[0]["x"]`, `("mask",)` a keyword.
    Otherwise the qualified attribute name as one element: `("layers.0.weight",)`. A plain tensor attribute of the
    module counts as a buffer; it is absent from the `state_dict`. A constant is no attribute: `value` holds it."""
    spec: TensorSpec
    value: tuple[bool | int | float, ...] | None = None
    """For `constant`: its elements in row-major order."""


class Sequence(Record):
    """A tuple or list in the returned structure."""

    kind: Literal["tuple", "list"]
    items: tuple[Tree, ...]


class Mapping(Record):
    """A dict in the returned structure."""

    keys: tuple[str, ...]
    items: tuple[Tree, ...]


if TYPE_CHECKING:
    Tree: TypeAlias = "Ref | Sequence | Mapping | bool | int | float | str | None"
else:
    Tree = TypeAliasType("Tree", "Ref | Sequence | Mapping | bool | int | float | str | None")
"""What `forward` returns, with tensors replaced by references."""


class Mutation(Record):
    """A state change that `forward` leaves behind."""

    target: str
    """Name of the graph input whose storage changes."""
    value: str
    """Name of the value that it holds afterwards."""


class Graph(Record):
    """A functional operator graph: no node mutates its inputs; state changes are listed apart."""

    inputs: tuple[GraphInput, ...]
    nodes: tuple[Node, ...]
    returns: Tree
    mutations: tuple[Mutation, ...] = ()

    def specs(self) -> dict[str, TensorSpec]:
        """Returns the spec of every tensor value by name."""
        found = {i.name: i.spec for i in self.inputs}
        for node in self.nodes:
            found.update({v.name: v.spec for v in node.outputs if v.spec is not None})
        return found

    def producers(self) -> dict[str, Node]:
        """Returns the node that makes each value."""
        return {v.name: node for node in self.nodes for v in node.outputs}

    def output_names(self) -> tuple[str, ...]:
        """Returns the names of the returned tensors, then of the mutated state, in order, with repeats."""
        return (*tree_refs(self.returns), *(m.value for m in self.mutations))


def tree_refs(tree: Tree) -> tuple[str, ...]:
    """Returns the value names in a returned structure, left to right."""
    match tree:
        case Ref(ref=name):
            return (name,)
        case Sequence(items=items) | Mapping(items=items):
            return tuple(name for item in items for name in tree_refs(item))
        case _:
            return ()


def arg_refs(arg: Arg) -> tuple[str, ...]:
    """Returns the value names that an argument uses, left to right."""
    match arg:
        case Ref(ref=name):
            return (name,)
        case tuple():
            return tuple(name for item in arg for name in arg_refs(item))
        case _:
            return ()


def node_refs(node: Node) -> tuple[str, ...]:
    """Returns the value names that a node uses, in order, with repeats."""
    return tuple(n for a in (*node.args, *node.kwargs.values()) for n in arg_refs(a))
