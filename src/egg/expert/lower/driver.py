"""Runs over the nodes of a graph and asks the families for definitions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from egg.expert.ir import Library, Program, Scalar, Statement
from egg.expert.lower.build import Build, Unsupported, operand_of
from egg.expert.lower.elements import Elements
from egg.expert.lower.registry import ANCHORS, LOWERINGS
from egg.schema.graph import DTYPE_BYTES, Graph, Node, TensorSpec, node_refs


def lower(graph: Graph, constants: Mapping[str, Any] = MappingProxyType({})) -> Program:
    """Returns the graph as a tensor program; operators that no family covers stay whole, with the reason.

    `constants` adds to the values that the graph records of its constant inputs, as numbers or nested lists of numbers;
    those whose elements are all one number become literals.
    """
    specs = graph.specs()
    recorded = {i.name: i.value for i in graph.inputs if i.value is not None}
    known = {name: value for name, data in {**recorded, **constants}.items() if (value := _single(data)) is not None}
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
        args = [operand_of(a, build, specs) for a in node.args]
        kwargs = {k: operand_of(a, build, specs) for k, a in node.kwargs.items()}
        result = lowering(build, *args, **kwargs)
    except Unsupported as reason:
        return [Library(node, str(reason))]
    return list(build.finish((result,) if isinstance(result, Elements) else result))


def _single(data: Any) -> Scalar | None:
    """Returns the one number of a constant, or None where its elements differ."""
    if not isinstance(data, list | tuple):
        return data
    found = [_single(item) for item in data]  # pyright: ignore[reportUnknownArgumentType]
    return found[0] if found and all(value is not None and value == found[0] for value in found) else None
