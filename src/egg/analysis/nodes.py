"""Nodes of a torch.fx graph as records."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from egg.errors import TaskError
from egg.schema.graph import Arg, Graph, Node, Ref, Symbol, Value, node_refs
from egg.tasks.load import spec_of

CARRY_NOTHING = ("aten._assert", "aten.sym_", "aten._functional_assert", "aten._functional_sym")
"""Operators that check or constrain and give no tensor that anyone uses."""

RANDOM = frozenset({"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "dropout", "native_dropout",
                    "bernoulli", "multinomial", "normal", "uniform", "normal_functional"})  # fmt: skip
"""Operators that draw from the global generator, so that leaving one out changes what the next one draws."""

DEFAULT_KWARGS = {"layout": torch.strided, "pin_memory": False}
"""Keyword arguments of factories that say nothing."""


class NodeReader:
    """Reads nodes in order; folds `getitem` into the node whose result it takes."""

    def __init__(self) -> None:
        self._alias: dict[str, str] = {}

    def read(self, fx_node: fx.Node) -> Node | None:
        """Returns the record of a call, or None for what is none. Raises TaskError for control flow."""
        if fx_node.op != "call_function" or fx_node.target is operator.getitem:
            return None
        target = fx_node.target
        if not isinstance(target, OpOverload):
            raise TaskError(f"operator {target} at {fx_node.name!r} is control flow or Python, which no graph can hold")
        op = str(target)
        if op.startswith(CARRY_NOTHING):
            return None
        return Node(
            op=op,
            args=tuple(self._arg(a) for a in fx_node.args),
            kwargs={k: self._arg(v) for k, v in fx_node.kwargs.items() if DEFAULT_KWARGS.get(k, ...) != v},
            outputs=self._outputs(fx_node),
        )

    def resolve(self, name: str) -> str:
        """Returns the value name behind the name of an fx node."""
        return self._alias.get(name, name)

    def _outputs(self, fx_node: fx.Node) -> tuple[Value, ...]:
        result = fx_node.meta.get("val")
        if not isinstance(result, list | tuple):
            return (Value(name=fx_node.name, spec=_spec(result)),)
        names = {}
        for user in fx_node.users:
            if user.target is operator.getitem:
                names.setdefault(user.args[1], user.name)
                self._alias[user.name] = names[user.args[1]]
        return tuple(
            Value(name=names.get(i, f"{fx_node.name}__{i}"), spec=_spec(item)) for i, item in enumerate(result)
        )

    def _arg(self, value: Any) -> Arg:
        match value:
            case fx.Node():
                return Ref(ref=self.resolve(value.name))
            case list() | tuple():
                return tuple(self._arg(item) for item in value)
            case None | bool() | int() | float() | str():
                return value
            case torch.dtype() | torch.layout() | torch.memory_format():
                text = str(value).removeprefix("torch.")
                return Symbol.model_validate({"kind": type(value).__name__, "text": text})
            case torch.device():
                return Symbol(kind="device", text=str(value))
            case _:
                raise TaskError(f"an argument of type {type(value).__name__} ({value!r}) can't be recorded")


def dead_nodes_removed(graph: Graph) -> Graph:
    """Returns the graph without the nodes that no output needs; random ones stay."""
    needed = set(graph.output_names())
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(v.name for v in node.outputs) and node.op.split(".")[1] not in RANDOM:
            continue
        kept.append(node)
        needed.update(node_refs(node))
    return graph.updated(nodes=tuple(reversed(kept)))


def _spec(result: Any) -> Any:
    return spec_of(result) if isinstance(result, torch.Tensor) else None
