"""Tensors that hold one number everywhere become that number in the operators that use them.

`zeros`, `ones` and `full`, and views of them, as an operand of add, sub, mul or div with another tensor, turn into a
literal where dtype and shape of the result stay. Legal for every dtype where the number is exact in it. Saves one read.
"""

from __future__ import annotations

from egg.expert.rewrites.matching import Facts, argument, base, number, replaced
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.graph import Arg, Graph, Node, Ref

VIEWS = ("view", "reshape", "expand", "permute", "transpose", "t", "squeeze", "unsqueeze", "clone", "slice", "select",
         "contiguous", "alias", "detach", "lift_fresh_copy")  # fmt: skip
FLOATS = ("float64", "float32")
EXACT_INTEGERS = {"float32": 2**24, "float64": 2**53}


def sites(graph: Graph) -> tuple[Site, ...]:
    """Returns the operators with a uniform tensor for an operand."""
    facts = Facts(graph)
    found: list[Site] = []
    for node in graph.nodes:
        literal = _literal(facts, node)
        if literal is not None:
            read = facts.spec(node.args[literal[0]])
            found.append(Site(node.name, f"{base(node)} by the number {literal[1]}", 0, read.bytes if read else 0))
    return tuple(found)


def apply(graph: Graph, site: Site) -> Graph:
    """Returns the graph with the literal in the operator."""
    facts = Facts(graph)
    node = facts.producers[site.at]
    literal = _literal(facts, node)
    if literal is None:
        raise KeyError(site.at)
    at, value = literal
    other = node.args[1 - at]
    return replaced(graph, site.at, [node.updated(args=(other, value, *node.args[2:]))])


def _literal(facts: Facts, node: Node) -> tuple[int, int | float] | None:
    """Returns which operand is uniform, and its number."""
    out = node.outputs[0].spec
    if out is None or out.dtype not in FLOATS or number(argument(node, 2, "alpha", 1)) != 1:
        return None
    if node.op not in ("aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor", "aten.div.Tensor"):
        return None
    for at in (1, 0) if base(node) in ("add", "mul") else (1,):
        other = facts.spec(node.args[1 - at])
        if other is None or other.shape != out.shape or other.dtype != out.dtype:
            continue
        value = uniform(facts, node.args[at])
        if value is not None:
            return at, value
    return None


def uniform(facts: Facts, arg: Arg) -> int | float | None:
    """Returns the number that every element of a tensor is; None where that is not known or not exact."""
    if not isinstance(arg, Ref):
        return None
    for entry in facts.graph.inputs:
        if entry.name == arg.ref:
            return _uniform_constant(getattr(entry, "value", None)) if entry.kind == "constant" else None
    node = facts.producers.get(arg.ref)
    if node is None or node.outputs[0].spec is None:
        return None
    name = base(node)
    if name in VIEWS:
        return uniform(facts, node.args[0])
    value = _fill(node)
    if value is None:
        return None
    limit = EXACT_INTEGERS.get(node.outputs[0].spec.dtype)
    exact = limit is None or node.outputs[0].spec.dtype == "float64" or (value == int(value) and abs(value) <= limit)
    return value if exact else None


def _uniform_constant(value: object) -> int | float | None:
    """Returns the number of a recorded constant of equal elements."""
    if not isinstance(value, tuple) or not value or any(v != value[0] for v in value):
        return None
    first = value[0]
    return first if isinstance(first, int | float) and not isinstance(first, bool) else None


def _fill(node: Node) -> int | float | None:
    match base(node):
        case "zeros" | "zeros_like" | "new_zeros":
            return 0.0
        case "ones" | "ones_like" | "new_ones":
            return 1.0
        case "full" | "full_like":
            return number(argument(node, 1, "fill_value"))
        case "scalar_tensor":
            return number(argument(node, 0, "s"))
        case _:
            return None


REWRITE = Rewrite("uniform-constants", "algebra.fold-constants", sites, apply)
