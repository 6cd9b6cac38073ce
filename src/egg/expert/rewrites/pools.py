"""Two average pools in a row are one: a mean of equal means is the mean of all.

Legal where both have windows as long as their steps, no padding, no ceiling, and the first covers its whole input, so
that every element counts once; in float32 and float64, when nobody reads the value in between. A mean over all
positions after such a pool is the mean over all positions of its input. Saves a write and a read of the first result.
"""

from __future__ import annotations

from egg.expert.rewrites.building import Draft
from egg.expert.rewrites.matching import EXACT_FLOATS, Facts, argument, base, ints, number, reduction, replaced
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.graph import Graph, Node, Ref


def sites(graph: Graph) -> tuple[Site, ...]:
    """Returns the second pool, or the mean, of each pair that is one."""
    facts = Facts(graph)
    found: list[Site] = []
    for node in graph.nodes:
        inner = _inner_pool(facts, node)
        out = inner.outputs[0].spec if inner is not None else None
        if out is not None:
            found.append(Site(node.name, "two means as one", out.numel, 2 * out.bytes))
    return tuple(found)


def apply(graph: Graph, site: Site) -> Graph:
    """Returns the graph with one pool or mean over the input of the first."""
    facts = Facts(graph)
    node = facts.producers[site.at]
    inner = _inner_pool(facts, node)
    first = _whole_windows(facts, inner) if inner is not None else None
    if inner is None or first is None or not isinstance(inner.args[0], Ref):
        raise KeyError(site.at)
    source = inner.args[0]
    draft = Draft(graph, site.at)
    second = _whole_windows(facts, node, covers=False)
    shape = node.outputs[0].spec.shape if node.outputs[0].spec is not None else ()
    if second is not None:
        window = tuple(a * b for a, b in zip(first, second, strict=True))
        value = draft.call(node.op, (source, window, window), shape)
    else:
        what = reduction(facts, node)
        if what is None:
            raise KeyError(site.at)
        value = draft.call("aten.mean.dim", (source, what.dims, what.keepdim), shape)
    return replaced(graph, site.at, draft.finish(value))


def _inner_pool(facts: Facts, node: Node) -> Node | None:
    """Returns the pool that feeds a second pool or a mean over all positions, where the two are one."""
    source = facts.node(node.args[0]) if node.args else None
    first = _whole_windows(facts, source) if source is not None and facts.only_use(source.name) else None
    if source is None or first is None:
        return None
    if base(node) == base(source):
        return source if _whole_windows(facts, node, covers=False) is not None else None
    what = reduction(facts, node)
    rank = len(facts.specs[source.name].shape)
    spatial = set(range(rank - len(first), rank))
    return source if what is not None and what.kind == "mean" and spatial <= set(what.dims) else None


def _whole_windows(facts: Facts, node: Node, covers: bool = True) -> tuple[int, ...] | None:
    """Returns the window of an average pool that counts each element once; with `covers`, all elements."""
    name = base(node)
    if name not in ("avg_pool1d", "avg_pool2d", "avg_pool3d"):
        return None
    spec, rank = facts.spec(node.args[0]), int(name[-2])
    window = ints(argument(node, 1, "kernel_size"))
    step = ints(argument(node, 2, "stride", ())) or window
    padding = ints(argument(node, 3, "padding", 0))
    if spec is None or spec.dtype not in EXACT_FLOATS or window is None or step is None or padding is None:
        return None
    window, step = (w * rank if len(w) == 1 else w for w in (window, step))
    divisor = number(argument(node, 6, "divisor_override"))
    if window != step or any(padding) or argument(node, 4, "ceil_mode", False) is not False or divisor is not None:
        return None
    extents = spec.shape[len(spec.shape) - rank :]
    whole = all(n % w == 0 for n, w in zip(extents, window, strict=True))
    return window if whole or not covers else None


REWRITE = Rewrite("pools", "algebra.compose-pools", sites, apply)
