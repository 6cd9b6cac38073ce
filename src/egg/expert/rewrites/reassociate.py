"""A chain of two matrix products is evaluated in the cheaper order: (A B) C = A (B C).

Legal in float32 and float64 where nobody else reads A B. With A of m x k, B of k x n and C of n x p the cost is
m k n + m n p multiplications before and k n p + m k p after; the rewrite goes only where it halves at least.
"""

from __future__ import annotations

from egg.expert.rewrites.building import Draft
from egg.expert.rewrites.matching import EXACT_FLOATS, Facts, base, replaced
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.graph import Graph, Node, Ref

PRODUCTS = ("mm", "matmul", "bmm")


def sites(graph: Graph) -> tuple[Site, ...]:
    """Returns the outer products of chains that are cheaper the other way round."""
    facts = Facts(graph)
    found: list[Site] = []
    for node in graph.nodes:
        chain = _chain(facts, node)
        if chain is None:
            continue
        (m, k), (_, n), (_, p) = (facts.specs[x.ref].shape[-2:] for x in chain)
        batch = facts.specs[node.name].numel // (m * p)
        left, right = m * k * n + m * n * p, k * n * p + m * k * p
        before, after = (right, left) if _inner_is_right(facts, node) else (left, right)
        if 2 * after <= before:
            found.append(Site(node.name, "matrix products in the cheaper order", 2 * batch * (before - after), 0))
    return tuple(found)


def apply(graph: Graph, site: Site) -> Graph:
    """Returns the graph with the two products in the other order."""
    facts = Facts(graph)
    node = facts.producers[site.at]
    chain = _chain(facts, node)
    if chain is None:
        raise KeyError(site.at)
    a, b, c = chain
    draft = Draft(graph, site.at)
    turned = _inner_is_right(facts, node)
    value = draft.matmul(draft.matmul(a, b), c) if turned else draft.matmul(a, draft.matmul(b, c))
    return replaced(graph, site.at, draft.finish(value))


def _chain(facts: Facts, node: Node) -> tuple[Ref, Ref, Ref] | None:
    """Returns the three factors of a product of a product, all with the same batch dimensions."""
    outer = _factors(facts, node)
    if outer is None:
        return None
    left, right = outer
    for inner, is_right in ((left, False), (right, True)):
        made = facts.node(inner)
        factors = _factors(facts, made) if made is not None and facts.only_use(inner.ref) else None
        if factors is not None:
            chain = (left, *factors) if is_right else (*factors, right)
            batches = {facts.specs[x.ref].shape[:-2] for x in chain}
            if len(batches) == 1:
                return chain
    return None


def _inner_is_right(facts: Facts, node: Node) -> bool:
    outer = _factors(facts, node)
    if outer is None:
        return False
    made = facts.node(outer[0])
    return not (made is not None and facts.only_use(outer[0].ref) and _factors(facts, made) is not None)


def _factors(facts: Facts, node: Node) -> tuple[Ref, Ref] | None:
    out = node.outputs[0].spec
    if base(node) not in PRODUCTS or out is None or out.dtype not in EXACT_FLOATS:
        return None
    left, right = node.args[0], node.args[1]
    specs = (facts.spec(left), facts.spec(right))
    if not isinstance(left, Ref) or not isinstance(right, Ref) or any(s is None or len(s.shape) < 2 for s in specs):
        return None
    return left, right


REWRITE = Rewrite("reassociate", "algebra.reassociate", sites, apply)
