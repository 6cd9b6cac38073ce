"""Bytes that a node, or a whole graph, must move at the least."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import prod

from egg.analysis.operators import base_name, class_of
from egg.schema.graph import DTYPE_BYTES, Graph, Node, TensorSpec, arg_refs, node_refs

Specs = Mapping[str, TensorSpec]


def footprint_bytes(spec: TensorSpec) -> int:
    """Returns the bytes of the distinct elements of a tensor: an expanded dimension counts once."""
    extents = spec.shape if not spec.stride else (n for n, s in zip(spec.shape, spec.stride, strict=True) if s != 0)
    return prod(extents) * DTYPE_BYTES.get(spec.dtype, 8) if spec.numel else 0


def tensor_refs(node: Node, specs: Specs) -> list[str]:
    """Returns the names of the tensors that a node uses, each once; a number read from a tensor is left out."""
    return [ref for ref in dict.fromkeys(node_refs(node)) if ref in specs]


def node_bytes(node: Node, specs: Specs) -> int:
    """Returns the inputs read once plus the outputs written once; 0 for a view."""
    if class_of(node.op) == "view":
        return 0
    return _written(node) + sum(_read(node, ref, specs) for ref in tensor_refs(node, specs))


def minimal_bytes(graph: Graph) -> int:
    """Returns the bytes of every input as far as it is used, plus every output once.

    An input that is only sliced or gathered from counts with what is taken. An output that is a view of an input, or
    the input itself, costs nothing more.
    """
    specs = graph.specs()
    users: dict[str, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for ref in tensor_refs(node, specs):
            users[ref].append(node)
    read = sum(_touched(i.name, users, specs) for i in graph.inputs)
    written = sum(footprint_bytes(specs[name]) for name in _made(graph) if name in specs)
    return read + written


def _touched(name: str, users: Mapping[str, list[Node]], specs: Specs) -> int:
    """Returns the bytes of a value that its users read, at most all of them."""
    total = 0
    for node in users.get(name, ()):
        if class_of(node.op) == "view":
            total += sum(_touched(v.name, users, specs) for v in node.outputs if v.spec is not None)
        else:
            total += _read(node, name, specs)
    return min(total, footprint_bytes(specs[name]))


def _made(graph: Graph) -> set[str]:
    """Returns the outputs whose data some node computes."""
    entered = {i.name for i in graph.inputs}
    for node in graph.nodes:
        refs = node_refs(node)
        if class_of(node.op) == "view" and refs and refs[0] in entered:
            entered.update(v.name for v in node.outputs)
    return set(graph.output_names()) - entered


def _read(node: Node, ref: str, specs: Specs) -> int:
    """Returns the bytes that a node reads of one operand; of a table, what the index takes."""
    whole = footprint_bytes(specs[ref])
    if class_of(node.op) == "gather" and ref == node_refs(node)[0]:
        return min(whole, _written(node))
    if class_of(node.op) == "factory" or (base_name(node.op) == "copy" and ref not in arg_refs(node.args[1])):
        return 0  # `zeros_like` reads the shape alone; `copy` overwrites its first operand
    return whole


def _written(node: Node) -> int:
    return sum(footprint_bytes(v.spec) for v in node.outputs if v.spec is not None)
