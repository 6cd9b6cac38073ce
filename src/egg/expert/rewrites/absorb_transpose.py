"""A transposed operand of a matrix product is read as it lies, not copied first.

    x @ Wᵀ = linear(x, W),    Aᵀ @ Bᵀ = (B A)ᵀ

Exact: the same products and sums. The first needs a matrix W; the second leaves one transposition of the result,
which whatever reads the result takes in. Saves one read and one write of the transposed operand.
"""

from __future__ import annotations

from egg.expert.rewrites.building import Draft
from egg.expert.rewrites.identities import permutation
from egg.expert.rewrites.matching import Facts, base, replaced
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.graph import Arg, Graph, Node, Ref

PRODUCTS = ("mm", "matmul", "bmm")


def sites(graph: Graph) -> tuple[Site, ...]:
    """Returns the products with a transposed operand that need no copy."""
    facts = Facts(graph)
    found: list[Site] = []
    for node in graph.nodes:
        operands = _untransposed(facts, node)
        if operands is not None:
            moved = sum(2 * facts.specs[o.ref].bytes for o in operands[1:])
            found.append(Site(node.name, "transposition into the product", 0, moved))
    return tuple(found)


def apply(graph: Graph, site: Site) -> Graph:
    """Returns the graph with the product of the operands as they lie."""
    facts = Facts(graph)
    node = facts.producers[site.at]
    operands = _untransposed(facts, node)
    if operands is None:
        raise KeyError(site.at)
    draft = Draft(graph, site.at)
    left, right = operands
    if left == node.args[0]:
        value = draft.linear(left, right)
    else:
        value = draft.matmul(right, left)
        rank = len(draft.shape(value))
        value = draft.permute(value, (*range(rank - 2), rank - 1, rank - 2))
    return replaced(graph, site.at, draft.finish(value))


def _untransposed(facts: Facts, node: Node) -> tuple[Ref, Ref] | None:
    """Returns `(x, W)` for x Wᵀ, `(A, B)` for Aᵀ Bᵀ, else None."""
    if base(node) not in PRODUCTS or len(node.args) < 2:
        return None
    left, right = (_swapped(facts, a) for a in node.args[:2])
    whole = node.args[0]
    spec = facts.spec(whole)
    if right is None or not isinstance(whole, Ref) or spec is None or len(spec.shape) < 2:
        return None
    if left is not None and facts.specs[left.ref].shape[:-2] == facts.specs[right.ref].shape[:-2]:
        return left, right
    return (whole, right) if len(facts.specs[right.ref].shape) == 2 else None


def _swapped(facts: Facts, arg: Arg) -> Ref | None:
    """Returns the value whose last two dimensions an argument has swapped, if that is all it does."""
    node = facts.node(arg)
    order = permutation(facts, node) if node is not None else None
    if node is None or order is None or len(order) < 2 or not isinstance(node.args[0], Ref):
        return None
    rank = len(order)
    return node.args[0] if order == (*range(rank - 2), rank - 1, rank - 2) else None


REWRITE = Rewrite("absorb-transpose", "algebra.absorb-transpose", sites, apply)
