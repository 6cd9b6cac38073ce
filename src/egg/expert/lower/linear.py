"""Matrix products, convolutions and attention: whole for a vendor library, or as reductions where loops do better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from types import MappingProxyType

from egg.expert.index import Index, divide, modulo
from egg.expert.ir import Bound, Define, Scalar
from egg.expert.lower.build import Build, Lowering, Unsupported, lowered
from egg.expert.lower.dtypes import sum_dtype
from egg.expert.lower.elements import Elements, Indices, broadcast_shape, cast, guarded, op, remap, reshape, truth
from egg.expert.lower.pooling import Sizes, expanded
from egg.schema.graph import Node, TensorSpec

_WHOLE = (
    "aten.einsum.default", "aten.bilinear.default", "aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input",
    "aten.rnn_relu.input",
)  # fmt: skip
"""Anchors that are never written as loops here."""


def as_reduction(node: Node, specs: Mapping[str, TensorSpec]) -> tuple[Define, ...] | None:
    """Returns an anchor as definitions of its results, or None where it is no anchor or has no such form.

    Its inner names are those of the node with a suffix; the last definition is the node's first result.
    """
    lowering = REDUCTIONS.get(node.op)
    if lowering is None:
        return None
    try:
        return tuple(lowered(node, lowering, Build(node, {}, set(specs)), specs))
    except Unsupported:
        return None


def _accumulated(b: Build, x: Elements) -> Elements:
    return cast(x, sum_dtype(b.dtype))


def product(b: Build, left: Elements, right: Elements, into: int | str) -> Elements:
    """Returns the matrix product of (..., M, K) and (..., K, N), broadcast over the leading dimensions."""
    batch = broadcast_shape(left.shape[:-2], right.shape[:-2])
    rows, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    shape = (*batch, rows, columns, inner)

    def aligned(x: Elements, last: Callable[[Indices], Indices]) -> Elements:
        skip = len(batch) - (x.rank - 2)

        def index(at: Indices) -> Indices:
            lead = zip(at[skip : len(batch)], x.shape[:-2], strict=True)
            return (*(Index() if e == 1 else i for i, e in lead), *last(at[len(batch) :]))

        return remap(_accumulated(b, x), shape, index)

    terms = aligned(left, lambda at: (at[0], at[2])) * aligned(right, lambda at: (at[2], at[1]))
    return b.reduce("sum", terms, (len(shape) - 1,), into)


def _matmul(b: Build, left: Elements, right: Elements, into: int | str = 0) -> Elements:
    if left.rank > 1 and right.rank > 1:
        return product(b, left, right, into)
    rows = reshape(left, (1, left.numel)) if left.rank == 1 else left
    columns = reshape(right, (right.numel, 1)) if right.rank == 1 else right
    return reshape(product(b, rows, columns, "product"), b.shape)


def _plus(x: Elements, added: Elements, beta: Scalar = 1, alpha: Scalar = 1) -> Elements:
    scaled = x if alpha == 1 else x * alpha
    return scaled if beta == 0 else scaled + (added if beta == 1 else added * beta)


def _addmm(b: Build, x: Elements, left: Elements, right: Elements, *, beta: Scalar = 1, alpha: Scalar = 1) -> Elements:
    return _plus(_accumulated(b, _matmul(b, left, right, "product")), _accumulated(b, x), beta, alpha)


def _addmv(b: Build, x: Elements, left: Elements, right: Elements, *, beta: Scalar = 1, alpha: Scalar = 1) -> Elements:
    column = product(b, left, reshape(right, (right.numel, 1)), "product")
    return _plus(_accumulated(b, reshape(column, b.shape)), _accumulated(b, x), beta, alpha)


def _outer(b: Build, left: Elements, right: Elements) -> Elements:
    rows = remap(_accumulated(b, left), b.shape, lambda at: at[:1])
    return rows * remap(_accumulated(b, right), b.shape, lambda at: at[1:])


def _linear(b: Build, x: Elements, weight: Elements, bias: Elements | None = None) -> Elements:
    if weight.rank != 2:
        raise Unsupported("a linear layer whose weight is no matrix")
    inner = x.rank - 1
    shape = (*x.shape[:-1], weight.shape[0], weight.shape[1])
    left = remap(_accumulated(b, x), shape, lambda at: (*at[:inner], at[-1]))
    terms = left * remap(_accumulated(b, weight), shape, lambda at: at[-2:])
    total = b.reduce("sum", terms, (len(shape) - 1,), 0 if bias is None else "product")
    return total if bias is None else total + _accumulated(b, bias)


def _convolved(
    b: Build,
    x: Elements,
    weight: Elements,
    bias: Elements | None,
    spread: Callable[[Elements, Elements], Elements],
) -> Elements:
    """Returns the convolution of a batch; `spread` gives the terms, with channels and kernel as last dimensions."""
    rank = weight.rank - 2
    batched = x.rank == rank + 2
    image = _accumulated(b, x if batched else reshape(x, (1, *x.shape)))
    terms = spread(image, _accumulated(b, weight))
    plain = bias is None and batched
    total = b.reduce("sum", terms, range(terms.rank - rank - 1, terms.rank), 0 if plain else "product")
    if bias is not None:
        total = _accumulated(b, total) + remap(_accumulated(b, bias), total.shape, lambda at: (at[1],))
    return total if batched else reshape(total, b.shape)


def _conv(
    b: Build,
    x: Elements,
    weight: Elements,
    bias: Elements | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Elements:
    rank = weight.rank - 2
    steps, gaps, sizes = expanded(stride, rank), expanded(dilation, rank), weight.shape[2:]
    if isinstance(padding, str):
        reach = [(k - 1) * d for k, d in zip(sizes, gaps, strict=True)]
        pads = [r // 2 if padding == "same" else 0 for r in reach]
    else:
        pads = expanded(padding, rank)

    def spread(image: Elements, kernel: Elements) -> Elements:
        outputs = b.shape[len(b.shape) - rank :]
        members, per_group = kernel.shape[1], kernel.shape[0] // groups
        shape = (image.shape[0], kernel.shape[0], *outputs, members, *sizes)

        def places(at: Indices) -> list[Index]:
            outs, steps_in = at[2 : 2 + rank], at[3 + rank :]
            rows = zip(outs, steps_in, steps, pads, gaps, strict=True)
            return [o * s + k * d - p for o, k, s, p, d in rows]

        def pixel(at: Indices) -> Indices:
            return (at[0], divide(at[1], per_group) * members + at[2 + rank], *places(at))

        terms = remap(image, shape, pixel) * remap(kernel, shape, lambda at: (at[1], *at[2 + rank :]))
        extents = image.shape[2:]
        return guarded(terms, lambda at: [Bound(i, 0, e) for i, e in zip(places(at), extents, strict=True)], 0)

    return _convolved(b, x, weight, bias, spread)


def _conv_transposed(
    b: Build,
    x: Elements,
    weight: Elements,
    bias: Elements | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Elements:
    rank = weight.rank - 2
    steps, gaps, pads = expanded(stride, rank), expanded(dilation, rank), expanded(padding, rank)

    def spread(image: Elements, kernel: Elements) -> Elements:
        outputs = b.shape[len(b.shape) - rank :]
        per_group, members = kernel.shape[1], kernel.shape[0] // groups
        shape = (image.shape[0], per_group * groups, *outputs, members, *kernel.shape[2:])

        def scaled(at: Indices) -> list[Index]:
            outs, steps_in = at[2 : 2 + rank], at[3 + rank :]
            return [o + p - k * d for o, k, p, d in zip(outs, steps_in, pads, gaps, strict=True)]

        def channel(at: Indices) -> Index:
            return divide(at[1], per_group) * members + at[2 + rank]

        def pixel(at: Indices) -> Indices:
            return (at[0], channel(at), *(divide(i, s) for i, s in zip(scaled(at), steps, strict=True)))

        def tap(at: Indices) -> Indices:
            return (channel(at), modulo(at[1], per_group), *at[3 + rank :])

        def bounds(at: Indices) -> list[Bound]:
            rows = list(zip(scaled(at), steps, image.shape[2:], strict=True))
            hits = [Bound(modulo(i, s), 0, 1) for i, s, _ in rows if s > 1]
            return [*hits, *(Bound(i, 0, (e - 1) * s + 1) for i, s, e in rows)]

        return guarded(remap(image, shape, pixel) * remap(kernel, shape, tap), bounds, 0)

    return _convolved(b, x, weight, bias, spread)


def _convolution(
    b: Build,
    x: Elements,
    weight: Elements,
    bias: Elements | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Elements:
    if transposed:
        return _conv_transposed(b, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return _conv(b, x, weight, bias, stride, padding, dilation, groups)


def _attention(
    b: Build,
    query: Elements,
    key: Elements,
    value: Elements,
    attn_mask: Elements | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Elements:
    """softmax(scale Q K^T + mask) V; rows that the mask empties give zeros, and the division comes last."""
    if dropout_p:
        raise Unsupported("random")
    q, k, v = (_accumulated(b, x) for x in (query, key, value))
    if enable_gqa:
        k, v = (_shared_heads(x, q.shape[-3]) for x in (k, v))
    factor = 1 / sqrt(q.shape[-1]) if scale is None else scale
    flipped = remap(k, (*k.shape[:-2], k.shape[-1], k.shape[-2]), lambda at: (*at[:-2], at[-1], at[-2]))
    scores = _masked(_accumulated(b, product(b, q, flipped, "scores")) * factor, attn_mask, is_causal)
    dims = (scores.rank - 1,)
    top = b.reduce("max", scores, dims, "max", True)
    shift = b.let("shift", op("where", op("eq", top, -float("inf")), 0, top))
    weights = op("exp", scores - shift)
    total = b.reduce("sum", weights, dims, "sum", True)
    mixed = product(b, weights, v, "mixed")
    return mixed / op("where", op("eq", total, 0), 1, total)


def _shared_heads(x: Elements, heads: int) -> Elements:
    """Returns keys or values with each head repeated for the queries that share it."""
    shared = heads // x.shape[-3]
    shape = (*x.shape[:-3], heads, *x.shape[-2:])
    return remap(x, shape, lambda at: (*at[:-3], divide(at[-3], shared), *at[-2:]))


def _masked(scores: Elements, mask: Elements | None, is_causal: bool) -> Elements:
    hidden = -float("inf")
    if is_causal:

        def bounds(at: Indices) -> list[Bound]:
            ahead = at[-1] - at[-2]
            return [Bound(ahead, ahead.bounds()[0], 1)]

        return guarded(scores, bounds, hidden)
    if mask is None:
        return scores
    if mask.dtype == "bool":
        return op("where", truth(mask), scores, hidden)
    return scores + cast(mask, scores.dtype)


REDUCTIONS: Mapping[str, Lowering] = MappingProxyType(
    {
        "aten.linear.default": _linear,
        "aten.matmul.default": _matmul,
        "aten.mm.default": _matmul,
        "aten.bmm.default": _matmul,
        "aten.mv.default": _matmul,
        "aten.dot.default": _matmul,
        "aten.addmm.default": _addmm,
        "aten.addmv.default": _addmv,
        "aten.baddbmm.default": _addmm,
        "aten.outer.default": _outer,
        **{f"aten.conv{n}d.default": _conv for n in (1, 2, 3)},
        **{f"aten.conv{n}d.padding": _conv for n in (1, 2, 3)},
        "aten.conv_transpose1d.default": _conv_transposed,
        "aten.conv_transpose2d.input": _conv_transposed,
        "aten.conv_transpose3d.input": _conv_transposed,
        "aten.convolution.default": _convolution,
        "aten.scaled_dot_product_attention.default": _attention,
    }
)
"""Anchors that have a form as reductions, by overload name."""

ANCHORS = frozenset((*REDUCTIONS, *_WHOLE))
"""Operators that stay whole because vendor libraries do them well, by overload name."""
