"""New nodes with their shapes: the few operators that rewrites put into a graph."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from egg.expert.rewrites.matching import Facts
from egg.schema.graph import Arg, Graph, Node, Ref, TensorSpec, Value

Operand = Ref | int | float


class Draft:
    """The nodes that take the place of one node. Names of new values start with the name of the node they replace."""

    def __init__(self, graph: Graph, at: str) -> None:
        self.at = at
        self.nodes: list[Node] = []
        self._specs = dict(Facts(graph).specs)
        self._target = self._specs[at]

    def shape(self, value: Ref) -> tuple[int, ...]:
        """Returns the shape of a value of the graph or of this draft."""
        return self._specs[value.ref].shape

    def call(self, op: str, args: Sequence[Arg], shape: Sequence[int], dtype: str | None = None) -> Ref:
        """Returns the result of a new node; its dtype is that of the replaced node unless given."""
        number = len(self.nodes)
        name = f"{self.at}_r{number}"
        while name in self._specs:
            number += 1
            name = f"{self.at}_r{number}"
        spec = TensorSpec(shape=tuple(shape), dtype=dtype or self._target.dtype)
        self._specs[name] = spec
        self.nodes.append(Node(op=op, args=tuple(args), outputs=(Value(name=name, spec=spec),)))
        return Ref(ref=name)

    def binary(self, op: str, left: Ref, right: Operand) -> Ref:
        """Returns `left op right` with broadcasting; op is `add`, `sub`, `mul` or `div`."""
        shape = broadcast(self.shape(left), self.shape(right)) if isinstance(right, Ref) else self.shape(left)
        return self.call(f"aten.{op}.Tensor", (left, right), shape)

    def sum(self, value: Ref, dims: Sequence[int], keepdim: bool = True) -> Ref:
        """Returns the sum over `dims`; dimensions of one element cost nothing when they are kept."""
        shape = self.shape(value)
        if keepdim and all(shape[d] == 1 for d in dims):
            return value
        kept = [1 if i in dims else n for i, n in enumerate(shape) if keepdim or i not in dims]
        return self.call("aten.sum.dim_IntList", (value, tuple(dims), keepdim), kept)

    def reshape(self, value: Ref, shape: Sequence[int]) -> Ref:
        """Returns the value in another shape."""
        if tuple(shape) == self.shape(value):
            return value
        if prod(shape) != prod(self.shape(value)):
            raise ValueError(f"{self.at}: shape {self.shape(value)} can't become {tuple(shape)}")
        return self.call("aten.reshape.default", (value, tuple(shape)), shape)

    def permute(self, value: Ref, order: Sequence[int]) -> Ref:
        """Returns the value with its dimensions reordered."""
        shape = self.shape(value)
        return self.call("aten.permute.default", (value, tuple(order)), [shape[d] for d in order])

    def slice(self, value: Ref, dim: int, start: int, stop: int, step: int = 1) -> Ref:
        """Returns elements `start:stop:step` of one dimension."""
        shape = list(self.shape(value))
        if (start, stop, step) == (0, shape[dim], 1):
            return value
        shape[dim] = len(range(start, stop, step))
        return self.call("aten.slice.Tensor", (value, dim, start, stop, step), shape)

    def cat(self, values: Sequence[Ref], dim: int) -> Ref:
        """Returns the values one after the other along `dim`."""
        if len(values) == 1:
            return values[0]
        shape = list(self.shape(values[0]))
        shape[dim] = sum(self.shape(v)[dim] for v in values)
        return self.call("aten.cat.default", (tuple(values), dim), shape)

    def linear(self, rows: Ref, weight: Ref, bias: Ref | None = None) -> Ref:
        """Returns `rows @ weight.T + bias`."""
        shape = (*self.shape(rows)[:-1], self.shape(weight)[0])
        return self.call("aten.linear.default", (rows, weight) if bias is None else (rows, weight, bias), shape)

    def matmul(self, left: Ref, right: Ref) -> Ref:
        """Returns the matrix product of two operands of rank 2 or more."""
        a, b = self.shape(left), self.shape(right)
        return self.call("aten.matmul.default", (left, right), (*broadcast(a[:-2], b[:-2]), a[-2], b[-1]))

    def finish(self, value: Ref) -> tuple[Node, ...]:
        """Returns the nodes, the last of which now makes the replaced value."""
        value = self.reshape(value, self._target.shape)
        if not self.nodes or self.nodes[-1].name != value.ref:
            value = self.call("aten.clone.default", (value,), self._target.shape)
        last = self.nodes[-1].updated(outputs=(Value(name=self.at, spec=self._target),))
        return (*self.nodes[:-1], last)


def broadcast(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape that two shapes broadcast to. Raises ValueError where they do not."""
    rank = max(len(left), len(right))
    a = (1,) * (rank - len(left)) + tuple(left)
    b = (1,) * (rank - len(right)) + tuple(right)
    for x, y in zip(a, b, strict=True):
        if x != y and 1 not in (x, y):
            raise ValueError(f"shapes {tuple(left)} and {tuple(right)} do not broadcast")
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
