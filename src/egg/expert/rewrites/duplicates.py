"""Equal operators on equal values are computed once, and what nobody reads is dropped.

Random operators are neither merged nor dropped: each draw moves the generator. Two outputs that are equal stay apart,
as they must not share storage. Saves the whole second operator.
"""

from __future__ import annotations

from egg.expert.rewrites.costs import node_bytes, node_flops
from egg.expert.rewrites.matching import Facts, base, is_random, pruned, redirected
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.base import canonical_json
from egg.schema.graph import Graph, Node


def sites(graph: Graph) -> tuple[Site, ...]:
    """Returns the operators whose results are unused or computed before."""
    facts = Facts(graph)
    live = {n.name for n in pruned(graph).nodes}
    found = [_site(facts, n, f"{base(n)} that nobody reads") for n in graph.nodes if n.name not in live]
    found += [_site(facts, n, f"second {base(n)}") for n in graph.nodes if n.name in live and _twin(facts, n)]
    return tuple(found)


def apply(graph: Graph, site: Site) -> Graph:
    """Returns the graph without the operator."""
    facts = Facts(graph)
    node = facts.producers[site.at]
    twin = _twin(facts, node)
    if twin is None:
        return pruned(graph)
    return redirected(graph, {a.name: b.name for a, b in zip(node.outputs, twin.outputs, strict=True)})


def _twin(facts: Facts, node: Node) -> Node | None:
    """Returns the first earlier node with the same operator and arguments."""
    if is_random(node):
        return None
    key = _key(node)
    for other in facts.graph.nodes:
        if other.name == node.name:
            return None
        if other.op == node.op and len(other.outputs) == len(node.outputs) and _key(other) == key:
            pairs = zip(node.outputs, other.outputs, strict=True)
            return other if all(facts.may_stand_for(a.name, b.name) for a, b in pairs) else None
    return None


def _key(node: Node) -> str:
    dumped = node.model_dump(mode="json", include={"op", "args", "kwargs"})
    return canonical_json(dumped)


def _site(facts: Facts, node: Node, title: str) -> Site:
    return Site(node.name, title, node_flops(facts, node), node_bytes(facts, node))


REWRITE = Rewrite("duplicates", "algebra.dead-and-duplicate", sites, apply)
