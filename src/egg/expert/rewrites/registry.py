"""All rewrites, in the order in which they are tried; a new one is its file and a line here."""

from __future__ import annotations

from egg.expert.rewrites import (
    absorb_transpose,
    constants,
    duplicates,
    fold_batch_norm,
    identities,
    pools,
    reassociate,
    reduce_conv,
    reduce_linear,
    scalar_chain,
    scale_bias,
    single_element,
)
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.graph import Graph

REWRITES: tuple[Rewrite, ...] = (
    identities.REWRITE,
    duplicates.REWRITE,
    single_element.REWRITE,
    constants.REWRITE,
    pools.REWRITE,
    reassociate.REWRITE,
    absorb_transpose.REWRITE,
    fold_batch_norm.REWRITE,
    scale_bias.REWRITE,
    scalar_chain.REWRITE,
    reduce_conv.REWRITE,
    reduce_linear.REWRITE,
)


def moves() -> tuple[str, ...]:
    """Returns the moves that some rewrite carries out, in order."""
    return tuple(dict.fromkeys(r.move for r in REWRITES))


def sites_of(graph: Graph, move: str) -> tuple[tuple[Rewrite, Site], ...]:
    """Returns every place where a rewrite of a move applies, rule by rule."""
    return tuple((r, s) for r in REWRITES if r.move == move for s in r.sites(graph))


def apply_all(graph: Graph, move: str) -> Graph:
    """Returns the graph once no rewrite of a move applies any more; each application removes or shortens work."""
    for _ in range(4 * len(graph.nodes) + 4):
        found = sites_of(graph, move)
        if not found:
            return graph
        rewrite, site = found[0]
        graph = rewrite.apply(graph, site)
    raise RuntimeError(f"rewrites of {move} do not come to an end on this graph")
