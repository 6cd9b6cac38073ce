"""The sum or mean of a convolution over all positions, without the convolution's output.

Every tap of the weight multiplies a window of the input; summed over all positions, that is the weight times the sum
of the window. So the sums of the windows are taken first (all but a border of the input is common to them), and
one small product over channels and taps follows:

    sum_p out[n, o, p] = sum_{c, k} W[o, c, k] S[n, c, k] + P b[o],    S[n, c, k] = sum_p in[n, c, s p + d k - pad]

A transposed convolution is the same with the windows of the positions that each tap sends into the output.
Legal for any stride, padding, dilation and groups, in float32 and float64, where only linear operators stand between.
"""

from __future__ import annotations

from collections.abc import Sequence

from egg.expert.rewrites.building import Draft
from egg.expert.rewrites.convolution import Convolution, convolution
from egg.expert.rewrites.matching import Facts, Reduction, numel
from egg.expert.rewrites.pushing import Path, path_to_core, pushed, reductions
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.graph import DTYPE_BYTES, Graph, Node, Ref


def sites(graph: Graph) -> tuple[Site, ...]:
    """Returns the sums and means over all positions of a convolution."""
    facts = Facts(graph)
    found: list[Site] = []
    for node, what in reductions(facts):
        path = _path(facts, what)
        conv = convolution(facts, path.core) if path is not None else None
        if conv is None or not set(conv.spatial_dims) <= set(what.dims) or numel(conv.positions) == 1:
            continue
        given = facts.specs[conv.input]
        after = given.numel + 2 * conv.batch * conv.weight_numel + 2 * given.numel
        if conv.flops > after:
            moved = 2 * conv.output_numel * DTYPE_BYTES[given.dtype]
            found.append(Site(node.name, f"{what.kind} before convolution", conv.flops - after, moved))
    return tuple(found)


def apply(graph: Graph, site: Site) -> Graph:
    """Returns the graph with window sums and one small product in place of the convolution."""
    return pushed(graph, site, _path, _summed)


def _path(facts: Facts, what: Reduction) -> Path | None:
    return path_to_core(facts, what, lambda n: convolution(facts, n) is not None)


def _summed(facts: Facts, draft: Draft, node: Node, dims: Sequence[int]) -> Ref:
    """Returns the convolution summed over all positions, and over batch or channels where `dims` has them."""
    conv = convolution(facts, node)
    if conv is None:
        raise KeyError(node.name)
    sums = Ref(ref=conv.input)
    weight = Ref(ref=conv.weight)
    for i, dim in enumerate(conv.spatial_dims):
        windows = [conv.window(i, tap) for tap in range(conv.kernel[i])]
        if len(set(windows)) == 1:
            sums = _window(draft, sums, dim, windows[0])
            weight = draft.sum(weight, [2 + i])
        else:
            sums = _windows(draft, sums, dim, windows)
    total = _product(draft, conv, sums, weight)
    if conv.bias is not None:
        per_channel = draft.reshape(Ref(ref=conv.bias), (1, conv.out_channels, *(1,) * len(conv.kernel)))
        if conv.rank_is_unbatched:
            per_channel = draft.reshape(per_channel, draft.shape(per_channel)[1:])
        total = draft.binary("add", total, draft.binary("mul", per_channel, numel(conv.positions)))
    rest = [d for d in dims if d not in conv.spatial_dims]
    return draft.sum(total, rest) if rest else total


def _window(draft: Draft, value: Ref, dim: int, window: range) -> Ref:
    return draft.sum(draft.slice(value, dim, window.start, window.stop, window.step), [dim])


def _windows(draft: Draft, value: Ref, dim: int, windows: Sequence[range]) -> Ref:
    """Returns the sums over each window, next to each other along `dim`.

    Windows of step 1 that share a middle get its sum once, plus what each has to its left and right.
    """
    low, high = max(w.start for w in windows), min(w.stop for w in windows)
    if all(w.step == 1 for w in windows) and low < high:
        middle = _window(draft, value, dim, range(low, high))
        parts: list[Ref] = []
        for w in windows:
            part = middle
            for side in (range(w.start, low), range(high, w.stop)):
                part = draft.binary("add", part, _window(draft, value, dim, side)) if side else part
            parts.append(part)
    else:
        parts = [_window(draft, value, dim, w) for w in windows]
    return draft.cat(parts, dim)


def _product(draft: Draft, conv: Convolution, sums: Ref, weight: Ref) -> Ref:
    """Returns the weight times the window sums: batch, output channels, then ones."""
    taps = numel(draft.shape(weight)[2:])
    inner = conv.in_channels // conv.groups * taps
    grouped = conv.out_channels // conv.groups
    ones = (1,) * len(conv.kernel)
    lead = () if conv.rank_is_unbatched else (conv.batch,)
    if conv.transposed:
        weight = draft.reshape(weight, (conv.groups, conv.in_channels // conv.groups, grouped, taps))
        weight = draft.permute(weight, (0, 2, 1, 3))
        weight = draft.reshape(weight, (conv.groups * grouped, inner))
    if conv.groups == 1:
        flat = draft.reshape(weight, (conv.out_channels, inner))
        product = draft.linear(draft.reshape(sums, (conv.batch, inner)), flat)
    else:
        each = draft.reshape(sums, (conv.batch, conv.groups, 1, inner))
        flat = draft.reshape(weight, (1, conv.groups, grouped, inner))
        product = draft.sum(draft.binary("mul", each, flat), [3], keepdim=False)
    return draft.reshape(product, (*lead, conv.out_channels, *ones))


REWRITE = Rewrite("reduce-conv", "algebra.reduce-conv", sites, apply)
