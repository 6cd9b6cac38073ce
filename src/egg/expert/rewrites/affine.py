"""A layer with weight and bias, and an affine map for each of its output channels that goes into them."""

from __future__ import annotations

from dataclasses import dataclass

from egg.expert.rewrites.building import Draft, Operand
from egg.expert.rewrites.convolution import convolution
from egg.expert.rewrites.matching import EXACT_FLOATS, Facts, argument, base
from egg.schema.graph import Node, Ref, Symbol


@dataclass(frozen=True)
class Layer:
    """A linear layer or convolution."""

    node: Node
    weight: Ref
    bias: Ref | None
    weight_channel_dim: int
    """Dimension of the weight that is the output channel."""
    channel_dim: int
    """Dimension of the output that is the channel."""
    channels: int
    out_numel: int
    weight_numel: int
    dtype: str


@dataclass(frozen=True)
class Affine:
    """`scale * y + shift`, each a number, a vector over the channels, or absent."""

    scale: Operand | None = None
    shift: Operand | None = None


def affine_layer(facts: Facts, name: str) -> Layer | None:
    """Returns the layer that makes a value that only one node reads, else None."""
    node = facts.producers.get(name)
    if node is None or not facts.only_use(name) or not facts.sole_result(node):
        return None
    out = node.outputs[0].spec
    if out is None or out.dtype not in EXACT_FLOATS:
        return None
    if base(node) == "linear":
        weight, bias, weight_dim, dim = node.args[1], argument(node, 2, "bias"), 0, len(out.shape) - 1
    else:
        conv = convolution(facts, node)
        if conv is None or (conv.transposed and conv.groups > 1):
            return None
        weight, bias = Ref(ref=conv.weight), Ref(ref=conv.bias) if conv.bias else None
        weight_dim, dim = (1 if conv.transposed else 0), len(out.shape) - len(conv.kernel) - 1
    spec = facts.spec(weight)
    if not isinstance(weight, Ref) or spec is None or spec.dtype != out.dtype or len(spec.shape) < 2:
        return None
    bias = bias if isinstance(bias, Ref) else None
    return Layer(node, weight, bias, weight_dim, dim, out.shape[dim], out.numel, spec.numel, out.dtype)


def absorb(draft: Draft, layer: Layer, by: Affine) -> Ref:
    """Returns the output of the layer with weight and bias changed so that it includes the affine map."""
    weight, bias = layer.weight, layer.bias
    if by.scale is not None:
        scale = by.scale
        if isinstance(scale, Ref):
            shape = [1] * len(draft.shape(weight))
            shape[layer.weight_channel_dim] = layer.channels
            weight = draft.binary("mul", weight, draft.reshape(scale, shape))
        else:
            weight = draft.binary("mul", weight, scale)
        bias = draft.binary("mul", bias, scale) if bias is not None else None
    if by.shift is not None:
        bias = _shifted(draft, layer, bias, by.shift)
    args = list(layer.node.args)
    args[1] = weight
    kwargs = {k: a for k, a in layer.node.kwargs.items() if k != "bias"}
    args[2:3] = [bias]
    spec = layer.node.outputs[0].spec
    if spec is None:
        raise ValueError(f"{layer.node.name}: no shape")
    made = draft.call(layer.node.op, args, spec.shape)
    if kwargs:
        draft.nodes[-1] = draft.nodes[-1].updated(kwargs=kwargs)
    return made


def _shifted(draft: Draft, layer: Layer, bias: Ref | None, shift: Operand) -> Ref:
    if bias is not None:
        return draft.binary("add", bias, shift)
    if isinstance(shift, Ref):
        return shift
    made = draft.call("aten.full.default", ((layer.channels,), shift), (layer.channels,))
    draft.nodes[-1] = draft.nodes[-1].updated(kwargs={"dtype": Symbol(kind="dtype", text=layer.dtype)})
    return made
