"""Runs over the nodes of a graph and asks the families for definitions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from egg.expert.ir import Library, Program, Scalar, Statement
from egg.expert.lower.build import Build, Unsupported
from egg.expert.lower.elements import Elements
from egg.expert.lower.registry import ANCHORS, LOWERINGS
from egg.schema.graph import DTYPE_BYTES, Arg, Graph, Node, Ref, Symbol, TensorSpec, node_refs


def lower(graph: Graph, constants: Mapping[str, Any] = MappingProxyType({})) -> Program:
    """Returns the graph as a tensor program; operators that no family covers stay whole, with the reason.

    `constants` gives values of graph inputs that never change, as numbers or nested lists of numbers; those with equal
    elements become literals.
    """
    specs = graph.specs()
    known = {name: value for name, data in constants.items() if (value := _single(data)) is not None}
    taken = set(specs)
    statements: list[Statement] = []
    for node in graph.nodes:
        statements += _lower_node(node, specs, known, taken)
    values = {s.name: s.spec for s in statements if not isinstance(s, Library)}
    return Program(graph.inputs, tuple(statements), graph.returns, graph.mutations, {**specs, **values})


def _lower_node(
    node: Node, specs: Mapping[str, TensorSpec], known: Mapping[str, Scalar], taken: set[str]
) -> list[Statement]:
    if node.op in ANCHORS:
        return [Library(node, "anchor")]
    lowering = LOWERINGS.get(node.op)
    if lowering is None:
        return [Library(node, "no family covers this operator")]
    dtypes = {specs[n].dtype for n in node_refs(node) if n in specs}
    dtypes |= {v.spec.dtype for v in node.outputs if v.spec is not None}
    if odd := sorted(dtypes - set(DTYPE_BYTES)):
        return [Library(node, f"dtype {odd[0]}")]
    build = Build(node, known, taken)
    try:
        args = [_operand(a, build, specs) for a in node.args]
        kwargs = {k: _operand(a, build, specs) for k, a in node.kwargs.items()}
        result = lowering(build, *args, **kwargs)
    except Unsupported as reason:
        return [Library(node, str(reason))]
    return list(build.finish((result,) if isinstance(result, Elements) else result))


def _operand(arg: Arg, build: Build, specs: Mapping[str, TensorSpec]) -> Any:
    match arg:
        case Ref(ref=name):
            if name not in specs:
                raise Unsupported(f"the argument {name} is computed and not a tensor")
            return build.tensor(name, specs[name])
        case Symbol(text=text):
            return text
        case tuple():
            return tuple(_operand(item, build, specs) for item in arg)
        case _:
            return arg


def _single(data: Any) -> Scalar | None:
    """Returns the one number of a constant, or None where its elements differ."""
    if not isinstance(data, list | tuple):
        return data
    found = [_single(item) for item in data]  # pyright: ignore[reportUnknownArgumentType]
    return found[0] if found and all(value is not None and value == found[0] for value in found) else None
