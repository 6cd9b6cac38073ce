"""sum(x Wᵀ + b) over features = x · sum(W) + sum(b); over rows = (sum of x) Wᵀ + n b. Likewise for a mean.

Legal where only linear operators stand between the product and the reduction, and nobody else reads them. The additions
are reordered, so float32 and float64 only. A product of M x K and K x N costs 2 M K N operations; afterwards it is
M K + K N for the features, M K + 2 K N for the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from egg.expert.rewrites.building import Draft
from egg.expert.rewrites.matching import Facts, Reduction, argument, base, number, numel
from egg.expert.rewrites.pushing import Path, path_to_core, pushed, reductions
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.graph import DTYPE_BYTES, Graph, Node, Ref

PRODUCTS = ("linear", "addmm", "mm", "matmul", "bmm")


def sites(graph: Graph) -> tuple[Site, ...]:
    """Returns the sums and means that need not wait for their product."""
    facts = Facts(graph)
    found: list[Site] = []
    for node, what in reductions(facts):
        path = _path(facts, what)
        out = path.core.outputs[0].spec if path is not None else None
        if path is None or out is None:
            continue
        core = path.core
        inner = _inner_extent(facts, core)
        summed = numel(out.shape[d] for d in what.dims)
        flops = 2 * out.numel * inner
        after = (out.numel // out.shape[-1] + out.shape[-1]) * inner * 2
        if summed > 1 and flops > after:
            moved = 2 * out.numel * DTYPE_BYTES[out.dtype]
            found.append(Site(node.name, f"{what.kind} before {base(core)}", flops - after, moved))
    return tuple(found)


def apply(graph: Graph, site: Site) -> Graph:
    """Returns the graph with the operands of the product reduced in place of its result."""
    return pushed(graph, site, _path, _summed)


def _path(facts: Facts, what: Reduction) -> Path | None:
    return path_to_core(facts, what, lambda n: _is_product(facts, n) and _separable(facts, n, what.dims))


def _is_product(facts: Facts, node: Node) -> bool:
    if base(node) not in PRODUCTS or not facts.sole_result(node):
        return False
    specs = [facts.spec(a) for a in _operands(node)]
    if base(node) == "addmm" and (number(node.kwargs.get("beta", 1)), number(node.kwargs.get("alpha", 1))) != (1, 1):
        return False
    return all(s is not None and len(s.shape) >= 2 for s in specs)


def _operands(node: Node) -> tuple[Ref, Ref]:
    left, right = node.args[1:3] if base(node) == "addmm" else node.args[:2]
    if not isinstance(left, Ref) or not isinstance(right, Ref):
        raise ValueError(f"{node.name}: {node.op} without tensor operands")
    return left, right


def _inner_extent(facts: Facts, node: Node) -> int:
    return facts.specs[_operands(node)[0].ref].shape[-1]


def _separable(facts: Facts, node: Node, dims: Sequence[int]) -> bool:
    """Returns whether every reduced batch dimension belongs to the left operand alone."""
    left, right = (facts.specs[o.ref].shape for o in _operands(node))
    rank = len(node.outputs[0].spec.shape) if node.outputs[0].spec is not None else 0
    batch = [d for d in dims if d < rank - 2]
    if not batch:
        return True
    return len(left) == rank and all(_extent(right, d, rank) == 1 for d in batch if base(node) != "linear")


def _extent(shape: Sequence[int], dim: int, rank: int) -> int:
    at = dim - (rank - len(shape))
    return shape[at] if at >= 0 else 1


def _summed(facts: Facts, draft: Draft, node: Node, dims: Sequence[int]) -> Ref:
    """Returns the product summed over `dims` of its result, dimensions kept."""
    left, right = _operands(node)
    rank = len(node.outputs[0].spec.shape) if node.outputs[0].spec is not None else 0
    rows = [d - (rank - len(draft.shape(left))) for d in dims if d != rank - 1]
    reduced = draft.sum(left, rows) if rows else left
    features = rank - 1 in dims
    if base(node) == "linear":
        product = _row_product(draft, reduced, draft.sum(right, [0])) if features else draft.linear(reduced, right)
    elif features:
        weight = draft.sum(right, [len(draft.shape(right)) - 1])
        order = (*range(len(draft.shape(weight)) - 2), len(draft.shape(weight)) - 1, len(draft.shape(weight)) - 2)
        product = _row_product(draft, reduced, draft.permute(weight, order))
    else:
        product = draft.matmul(reduced, right)
    bias = node.args[0] if base(node) == "addmm" else argument(node, 2, "bias") if base(node) == "linear" else None
    if not isinstance(bias, Ref):
        return product
    return draft.binary("add", product, _bias_sum(facts, draft, bias, node, dims))


def _row_product(draft: Draft, rows: Ref, weight: Ref) -> Ref:
    """Returns `rows @ weight.T` for a weight of one row, as a sum of products, which fuses with what is around it."""
    product = draft.binary("mul", rows, weight)
    return draft.sum(product, [len(draft.shape(product)) - 1])


def _bias_sum(facts: Facts, draft: Draft, bias: Ref, node: Node, dims: Sequence[int]) -> Ref:
    out = node.outputs[0].spec
    if out is None:
        raise ValueError(f"{node.name}: no shape")
    own = draft.shape(bias)
    full = draft.reshape(bias, (1,) * (len(out.shape) - len(own)) + own) if len(own) < len(out.shape) else bias
    total = draft.sum(full, dims)
    copies = numel(out.shape[d] for d in dims if draft.shape(full)[d] == 1)
    return draft.binary("mul", total, copies) if copies > 1 else total


REWRITE = Rewrite("reduce-linear", "algebra.reduce-linear", sites, apply)
