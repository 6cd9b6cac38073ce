"""Batch normalisation with frozen statistics becomes part of the weight and bias of the layer before it.

    bn(W x + b) = (s W) x + (b - mean) s + beta,    s = gamma / sqrt(var + eps)

Legal in evaluation mode only, after a convolution or linear layer that nobody else reads, in float32 and float64. The
weight is scaled anew at every call, so changed parameters are seen. It saves one pass over the output and
costs one over the weight.
"""

from __future__ import annotations

from dataclasses import dataclass

from egg.expert.rewrites.affine import Affine, absorb, affine_layer
from egg.expert.rewrites.building import Draft
from egg.expert.rewrites.matching import EXACT_FLOATS, Facts, argument, number, replaced
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.graph import DTYPE_BYTES, Graph, Node, Ref


@dataclass(frozen=True)
class BatchNorm:
    """Frozen batch normalisation."""

    source: str
    gamma: Ref | None
    beta: Ref | None
    mean: Ref
    variance: Ref
    eps: float


def sites(graph: Graph) -> tuple[Site, ...]:
    """Returns the frozen batch normalisations right after a layer whose weight can take them."""
    facts = Facts(graph)
    found: list[Site] = []
    for node in graph.nodes:
        norm = batch_norm(facts, node)
        layer = affine_layer(facts, norm.source) if norm is not None else None
        if layer is None or layer.channel_dim != 1:
            continue
        moved = (2 * layer.out_numel - 2 * layer.weight_numel) * DTYPE_BYTES[layer.dtype]
        found.append(Site(node.name, "batch norm into the weight", 2 * layer.out_numel - layer.weight_numel, moved))
    return tuple(found)


def apply(graph: Graph, site: Site) -> Graph:
    """Returns the graph with one layer in place of layer and normalisation."""
    facts = Facts(graph)
    norm = batch_norm(facts, facts.producers[site.at])
    layer = affine_layer(facts, norm.source) if norm is not None else None
    if norm is None or layer is None:
        raise KeyError(site.at)
    draft = Draft(graph, site.at)
    channels = draft.shape(norm.mean)
    spread = draft.call("aten.rsqrt.default", (draft.binary("add", norm.variance, norm.eps),), channels)
    scale = draft.binary("mul", norm.gamma, spread) if norm.gamma is not None else spread
    shift = draft.binary("mul", draft.binary("mul", norm.mean, scale), -1)
    if norm.beta is not None:
        shift = draft.binary("add", norm.beta, shift)
    value = absorb(draft, layer, Affine(scale, shift))
    return replaced(graph, site.at, draft.finish(value))


def batch_norm(facts: Facts, node: Node) -> BatchNorm | None:
    """Returns the frozen batch normalisation that a node is, else None."""
    training, eps = {
        "aten._native_batch_norm_legit_no_training.default": (False, 6),
        "aten.batch_norm.default": (argument(node, 5, "training"), 7),
        "aten._native_batch_norm_legit.default": (argument(node, 5, "training"), 7),
    }.get(node.op, (True, 0))
    if training is not False or not facts.sole_result(node):
        return None
    source, gamma, beta, mean, variance = node.args[:5]
    spec = facts.spec(source)
    small = number(argument(node, eps, "eps"))
    if not isinstance(source, Ref) or not isinstance(mean, Ref) or not isinstance(variance, Ref) or spec is None:
        return None
    if small is None or spec.dtype not in EXACT_FLOATS or not facts.only_use(source.ref):
        return None
    others = (gamma, beta, mean, variance)
    if any(isinstance(a, Ref) and facts.specs[a.ref].dtype != spec.dtype for a in others):
        return None
    return BatchNorm(
        source.ref, gamma if isinstance(gamma, Ref) else None, beta if isinstance(beta, Ref) else None,
        mean, variance, float(small),
    )  # fmt: skip


REWRITE = Rewrite("fold-batch-norm", "algebra.fold-batch-norm", sites, apply)
