"""A scale or shift for each output channel goes into the weight and bias of the layer before it.

    s (W x + b) + t = (s W) x + (s b + t)

Numbers and per-channel vectors, in any order, after a linear layer or convolution that nobody else reads. Legal in
float32 and float64. A shift is nearly free; a scale costs one pass over the weight at every call (parameters may
change between calls) and is worth it only where the output is larger than the weight.
"""

from __future__ import annotations

from egg.expert.rewrites.affine import Affine, Layer, absorb, affine_layer
from egg.expert.rewrites.building import Draft, Operand
from egg.expert.rewrites.matching import Facts, argument, base, number, replaced
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.graph import DTYPE_BYTES, Arg, Graph, Node, Ref


def sites(graph: Graph) -> tuple[Site, ...]:
    """Returns the scales and shifts right after a layer that are cheaper inside it."""
    facts = Facts(graph)
    found: list[Site] = []
    for node in graph.nodes:
        matched = _match(facts, node)
        if matched is None:
            continue
        layer, affine = matched
        extra = layer.weight_numel if affine.scale is not None else layer.channels
        if layer.out_numel > extra:
            moved = 2 * (layer.out_numel - extra) * DTYPE_BYTES[layer.dtype]
            found.append(Site(node.name, f"{base(node)} into the weight", layer.out_numel - extra, moved))
    return tuple(found)


def apply(graph: Graph, site: Site) -> Graph:
    """Returns the graph with the changed weight and bias."""
    facts = Facts(graph)
    matched = _match(facts, facts.producers[site.at])
    if matched is None:
        raise KeyError(site.at)
    layer, affine = matched
    draft = Draft(graph, site.at)
    scale, shift = (_vector(draft, layer, v) for v in (affine.scale, affine.shift))
    return replaced(graph, site.at, draft.finish(absorb(draft, layer, Affine(scale, shift))))


def _match(facts: Facts, node: Node) -> tuple[Layer, Affine] | None:
    out = node.outputs[0].spec
    if out is None or node.op not in ("aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor"):
        return None
    if number(argument(node, 2, "alpha", 1)) != 1:
        return None
    operator = base(node)
    pairs = [(node.args[0], node.args[1])] + ([(node.args[1], node.args[0])] if operator in ("add", "mul") else [])
    for value, other in pairs:
        layer = affine_layer(facts, value.ref) if isinstance(value, Ref) else None
        if layer is None or facts.specs[layer.node.name].shape != out.shape or layer.dtype != out.dtype:
            continue
        affine = _affine(facts, layer, operator, other)
        if affine is not None:
            return layer, affine
    return None


def _affine(facts: Facts, layer: Layer, operator: str, other: Arg) -> Affine | None:
    value = number(other)
    if value is not None:
        match operator:
            case "add":
                return Affine(shift=value)
            case "sub":
                return Affine(shift=-value)
            case "mul":
                return Affine(scale=value)
            case _:
                return None
    spec = facts.spec(other)
    if operator not in ("add", "mul") or not isinstance(other, Ref) or spec is None or spec.dtype != layer.dtype:
        return None
    rank = len(facts.specs[layer.node.name].shape)
    at = layer.channel_dim - (rank - len(spec.shape))
    if spec.numel == 1:
        return Affine(scale=other) if operator == "mul" else Affine(shift=other)
    if at < 0 or spec.numel != layer.channels or spec.shape[at] != layer.channels:
        return None
    return Affine(scale=other) if operator == "mul" else Affine(shift=other)


def _vector(draft: Draft, layer: Layer, value: Operand | None) -> Operand | None:
    """Returns a tensor operand as a vector over the channels."""
    if not isinstance(value, Ref):
        return value
    size = 1 if draft.shape(value) == () or set(draft.shape(value)) == {1} else layer.channels
    flat = draft.reshape(value, (size,))
    if size == layer.channels:
        return flat
    return draft.call("aten.expand.default", (flat, (layer.channels,)), (layer.channels,))


REWRITE = Rewrite("scale-bias", "algebra.merge-scale-bias", sites, apply)
