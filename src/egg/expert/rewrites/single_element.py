"""Reductions over one element: mean, sum and maximum are the element, softmax is one, log-softmax is zero.

NaN and infinities come out as the reference gives them: softmax over one element is `x * 0 + 1`, which is NaN where
`exp(x - max)` would be. Saves the reduction.
"""

from __future__ import annotations

from egg.expert.rewrites.building import Draft
from egg.expert.rewrites.costs import node_bytes, node_flops
from egg.expert.rewrites.matching import EXACT_FLOATS, Facts, argument, base, ints, number, numel, replaced
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.graph import Graph, Node, Ref

TAKES_IT = ("sum", "mean", "amax", "amin", "logsumexp", "prod", "cumsum", "cumprod", "logcumsumexp", "nansum")
SOFTMAX = ("softmax", "_softmax", "log_softmax", "_log_softmax")


def sites(graph: Graph) -> tuple[Site, ...]:
    """Returns the reductions, scans and softmaxes over dimensions of one element."""
    facts = Facts(graph)
    return tuple(
        Site(n.name, f"{base(n)} over one element", node_flops(facts, n), node_bytes(facts, n))
        for n in graph.nodes
        if _applies(facts, n)
    )


def apply(graph: Graph, site: Site) -> Graph:
    """Returns the graph with the element itself, a one or a zero in place of the reduction."""
    facts = Facts(graph)
    node = facts.producers[site.at]
    source = node.args[0]
    if not isinstance(source, Ref):
        raise KeyError(site.at)
    draft = Draft(graph, site.at)
    if base(node) in SOFTMAX:
        value = draft.binary("mul", source, 0.0)
        if "log" not in base(node):
            value = draft.binary("add", value, 1.0)
    else:
        value = source
    return replaced(graph, site.at, draft.finish(value))


def _applies(facts: Facts, node: Node) -> bool:
    name, out = base(node), node.outputs[0].spec
    spec = facts.spec(node.args[0]) if node.args else None
    if spec is None or out is None or name not in (*TAKES_IT, *SOFTMAX) or not facts.sole_result(node):
        return False
    if spec.dtype != out.dtype or spec.dtype not in EXACT_FLOATS or not spec.shape or name == "nansum":
        return False
    dims = _dims(node, len(spec.shape))
    return dims is not None and numel(spec.shape[d] for d in dims) == 1


def _dims(node: Node, rank: int) -> tuple[int, ...] | None:
    if len(node.args) < 2 and "dim" not in node.kwargs:
        return tuple(range(rank)) if node.op.endswith(".default") else None
    given = argument(node, 1, "dim")
    if base(node) not in SOFTMAX and given is None:
        return tuple(range(rank))
    dims = ints(given)
    if dims is None or number(dims[0] if dims else 0) is None:
        return None
    return tuple(d % rank for d in dims) if dims else tuple(range(rank))


REWRITE = Rewrite("single-element", "algebra.dead-and-duplicate", sites, apply)
