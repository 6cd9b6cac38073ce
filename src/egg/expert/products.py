"""Which library anchors may do better as loops: products with few rows, and convolutions with short sums."""

from __future__ import annotations

from collections.abc import Iterable

from egg.expert.ir import Library, Program
from egg.expert.lower import as_reduction
from egg.expert.rewrites.convolution import convolution
from egg.expert.rewrites.costs import PRODUCTS, product_rows
from egg.expert.rewrites.matching import Facts, base
from egg.schema.graph import Graph, Node

MOST_ROWS = 16
"""Rows of a product, at most: with more, the library's blocking wins."""
MOST_TERMS = 64
"""Terms of each sum of a convolution, at most: a depthwise one has a handful."""


def loop_products(graph: Graph) -> tuple[str, ...]:
    """Returns the names of the products and convolutions that loops may compute faster than the library."""
    facts = Facts(graph)
    specs = graph.specs()
    return tuple(n.name for n in graph.nodes if _is_short(facts, n) and as_reduction(n, specs) is not None)


def reducible(program: Program, names: Iterable[str]) -> frozenset[str]:
    """Returns those library statements of a program, among `names`, that can be written as reductions."""
    wanted = frozenset(names)
    calls = [s for s in program.statements if isinstance(s, Library) and s.name in wanted]
    return frozenset(s.name for s in calls if as_reduction(s.node, program.specs) is not None)


def _is_short(facts: Facts, node: Node) -> bool:
    out = node.outputs[0].spec
    if out is None:
        return False
    name = base(node)
    if name in PRODUCTS:
        return product_rows(name, out.shape) <= MOST_ROWS
    if name == "scaled_dot_product_attention":
        return out.shape[-2] <= MOST_ROWS
    conv = convolution(facts, node)
    return conv is not None and conv.weight_numel // conv.out_channels <= MOST_TERMS and not conv.transposed
