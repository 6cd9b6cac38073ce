"""Two multiplications (divisions, additions) by numbers in a row become one.

    (x * a) * b = x * (a b),    (x + a) + b = x + (a + b),    (x / a) / b = x / (a b),    -(x * a) = x * -a

The two numbers are combined in double precision and rounded once, so the result is at least as near to the exact one.
A division is not turned into a multiplication: the reciprocal's rounding would cost up to two ulps. Legal in float32
and float64 when nobody reads the value in between. Saves one pass over the tensor.
"""

from __future__ import annotations

from math import isfinite

from egg.expert.rewrites.building import Draft
from egg.expert.rewrites.costs import node_bytes, node_flops
from egg.expert.rewrites.matching import EXACT_FLOATS, Facts, argument, base, number, replaced
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.graph import Graph, Node, Ref

Step = tuple[Ref, str, float]
"""Source, operator and number of one step; the operator is `add`, `mul` or `div`."""

LARGEST = {"float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308}
SMALLEST = {"float32": 1.1754943508222875e-38, "float64": 2.2250738585072014e-308}


def sites(graph: Graph) -> tuple[Site, ...]:
    """Returns the second step of every pair that merges."""
    facts = Facts(graph)
    found: list[Site] = []
    for node in graph.nodes:
        merged = _merged(facts, node)
        if merged is not None:
            title = f"two steps of {merged[1]} by a number"
            found.append(Site(node.name, title, node_flops(facts, node), node_bytes(facts, node)))
    return tuple(found)


def apply(graph: Graph, site: Site) -> Graph:
    """Returns the graph with one step in place of two."""
    facts = Facts(graph)
    merged = _merged(facts, facts.producers[site.at])
    if merged is None:
        raise KeyError(site.at)
    source, operator, value = merged
    draft = Draft(graph, site.at)
    return replaced(graph, site.at, draft.finish(draft.binary(operator, source, value)))


def _merged(facts: Facts, node: Node) -> Step | None:
    second = _step(facts, node)
    inner = facts.node(second[0]) if second is not None else None
    first = _step(facts, inner) if inner is not None and facts.only_use(inner.name) else None
    if first is None or second is None or first[1] != second[1]:
        return None
    value = first[2] + second[2] if first[1] == "add" else first[2] * second[2]
    spec = facts.specs[node.name]
    in_range = isfinite(value) and abs(value) <= LARGEST[spec.dtype]
    if first[1] != "add":
        in_range = in_range and abs(value) >= SMALLEST[spec.dtype] and _same_side(first[2], second[2])
    return (first[0], first[1], value) if in_range else None


def _same_side(a: float, b: float) -> bool:
    """Returns whether both shrink or both grow: otherwise the step in between may overflow where one step does not."""
    return (abs(a) <= 1) == (abs(b) <= 1) or 1e-3 <= abs(a) <= 1e3


def _step(facts: Facts, node: Node) -> Step | None:
    out = node.outputs[0].spec
    if out is None or out.dtype not in EXACT_FLOATS or not node.args:
        return None
    source = node.args[0]
    if node.op == "aten.neg.default" and isinstance(source, Ref):
        return source, "mul", -1.0
    if node.op not in ("aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor"):
        return None
    value, operator = number(node.args[1]), base(node)
    if value is None or not isinstance(source, Ref) or facts.specs[source.ref].dtype != out.dtype:
        return None
    if number(argument(node, 2, "alpha", 1)) != 1:
        return None
    if operator == "sub":
        return source, "add", -float(value)
    return None if value == 0 and operator != "add" else (source, operator, float(value))


REWRITE = Rewrite("scalar-chain", "algebra.merge-scale-bias", sites, apply)
