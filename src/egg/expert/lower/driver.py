"""Runs over the nodes of a graph and asks the families for definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from egg.expert.ir import Library, Program, Scalar, Statement
from egg.expert.lower.build import Build, Unsupported, lowered
from egg.expert.lower.registry import ANCHORS, LOWERINGS
from egg.schema.graph import DTYPE_BYTES, Graph, Node, TensorSpec, node_refs


def lower(graph: Graph, constants: Mapping[str, Any] = MappingProxyType({})) -> Program:
    """Returns the graph as a tensor program; operators that no family covers stay whole, with the reason.

    `constants` adds to the values that the graph records of its constant inputs, as numbers or nested lists of numbers;
    those whose elements are all one number become literals.
    """
    recorded = {i.name: i.value for i in graph.inputs if i.value is not None}
    known = {name: value for name, data in {**recorded, **constants}.items() if (value := _single(data)) is not None}
    used = {*graph.output_names(), *(name for node in graph.nodes for name in node_refs(node))}
    specs = graph.specs()
    surroundings = _Surroundings(specs, known, set(specs), frozenset(used))
    statements = [s for node in graph.nodes for s in _lower_node(node, surroundings)]
    values = {s.name: s.spec for s in statements if not isinstance(s, Library)}
    return Program(graph.inputs, tuple(statements), graph.returns, graph.mutations, {**specs, **values})


@dataclass(frozen=True)
class _Surroundings:
    """What a node needs to know of its graph."""

    specs: Mapping[str, TensorSpec]
    known: Mapping[str, Scalar]
    taken: set[str]
    """Names that are in use; grows."""
    used: frozenset[str]
    """Values that some node or the result reads."""


def _lower_node(node: Node, around: _Surroundings) -> Sequence[Statement]:
    if node.op in ANCHORS:
        return [Library(node, "anchor")]
    lowering = LOWERINGS.get(node.op)
    if lowering is None:
        return [Library(node, "no family covers this operator")]
    read = [around.specs[n] for n in node_refs(node) if n in around.specs]
    made = {v.name: v.spec for v in node.outputs if v.spec is not None}
    if odd := sorted({s.dtype for s in (*read, *made.values())} - set(DTYPE_BYTES)):
        return [Library(node, f"dtype {odd[0]}")]
    wanted = [spec for name, spec in made.items() if name in around.used or len(made) == 1]
    if any(0 in s.shape for s in (*read, *wanted)):
        return [Library(node, "a tensor without elements")]
    try:
        defines = lowered(node, lowering, Build(node, around.known, around.taken), around.specs)
    except Unsupported as reason:
        return [Library(node, str(reason))]
    missing = {v.name for v in node.outputs} - {d.name for d in defines}
    if lost := sorted(missing & around.used):
        return [Library(node, f"its result {lost[0]} is used, which no family gives")]
    return defines


def _single(data: Any) -> Scalar | None:
    """Returns the one number of a constant, or None where its elements differ."""
    if not isinstance(data, list | tuple):
        return data
    found = [_single(item) for item in data]  # pyright: ignore[reportUnknownArgumentType]
    return found[0] if found and all(value is not None and value == found[0] for value in found) else None
