"""Operators that choose between sources by position: concatenation, padding, triangles, diagonals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from egg.expert.index import Index, constant
from egg.expert.ir import Bound, Scalar
from egg.expert.lower.build import Build, Lowering
from egg.expert.lower.elements import Elements, Indices, filled, guarded, remap, reshape
from egg.expert.lower.pointwise import operand
from egg.expert.lower.views import swapped

Fold = Callable[[Index], Index]
"""Where a position outside the source reads."""


def joined(parts: Sequence[Elements], dim: int) -> Elements:
    """Returns the tensors of one dtype one after the other along `dim`; each is read inside its own range only."""
    total = sum(p.shape[dim] for p in parts)
    shape = (*parts[0].shape[:dim], total, *parts[0].shape[dim + 1 :])
    start = total
    result: Elements = filled(0, parts[0].dtype, shape)
    for part in reversed(parts):
        start -= part.shape[dim]
        result = _placed(part, dim, start, result)
    return result


def _placed(part: Elements, dim: int, start: int, rest: Elements) -> Elements:
    """Returns `part` from `start` on along `dim`, and `rest` elsewhere."""
    end = start + part.shape[dim]
    body = remap(part, rest.shape, lambda at: swapped(at, dim, at[dim] - start))
    return guarded(body, lambda at: (Bound(at[dim], start, end),), rest)


def _cat(b: Build, tensors: Sequence[Elements], dim: int = 0) -> Elements:
    parts = [operand(t, b.dtype) for t in tensors if t.shape != (0,) or len(b.shape) == 1]
    return joined(parts, dim % len(b.shape))


def _stack(b: Build, tensors: Sequence[Elements], dim: int = 0) -> Elements:
    d = dim % len(b.shape)
    return joined([operand(reshape(t, (*t.shape[:d], 1, *t.shape[d:])), b.dtype) for t in tensors], d)


def _constant_pad(b: Build, x: Elements, pad: Sequence[int], value: Scalar = 0) -> Elements:
    before = {x.rank - 1 - n: pad[2 * n] for n in range(len(pad) // 2)}
    body = remap(x, b.shape, lambda at: tuple(i - before.get(d, 0) for d, i in enumerate(at)))

    def bounds(at: Indices) -> list[Bound]:
        return [Bound(at[d] - n, 0, x.shape[d]) for d, n in before.items()]

    return guarded(body, bounds, value)


def _folded(b: Build, x: Elements, pad: Sequence[int], fold: str) -> Elements:
    """Padding with elements of the tensor itself, by an index that the pads fold back into its range."""
    before = {x.rank - 1 - n: (pad[2 * n], pad[2 * n + 1]) for n in range(len(pad) // 2)}
    result = x
    for d, (low, high) in before.items():
        result = _fold_dim(result, d, low, high, fold)
    return result


def _fold_dim(x: Elements, dim: int, low: int, high: int, fold: str) -> Elements:
    extent = x.shape[dim]
    shape = (*x.shape[:dim], extent + low + high, *x.shape[dim + 1 :])

    def read(index: Fold) -> Elements:
        return remap(x, shape, lambda at: swapped(at, dim, index(at[dim] - low)))

    last = extent - 1
    outside: dict[str, tuple[Fold, Fold]] = {
        "reflect": (lambda i: i * -1, lambda i: i * -1 + 2 * last),
        "replicate": (lambda i: constant(0), lambda i: constant(last)),
        "circular": (lambda i: i + extent, lambda i: i - extent),
    }
    before, after = map(read, outside[fold])
    inside = read(lambda i: i)
    upper = guarded(inside, lambda at: (Bound(at[dim] - low, 0, extent),), after) if high > 0 else inside
    return guarded(upper, lambda at: (Bound(at[dim] - low, 0, extent + max(high, 0)),), before) if low > 0 else upper


def _fold_pad(fold: str) -> Lowering:
    return lambda b, x, pad: _folded(b, x, pad, fold)


def _pad(b: Build, x: Elements, pad: Sequence[int], mode: str = "constant", value: Scalar | None = None) -> Elements:
    if mode == "constant":
        return _constant_pad(b, x, pad, 0 if value is None else value)
    return _folded(b, x, pad, mode)


def _triangle(upper: bool) -> Lowering:
    def lowering(b: Build, x: Elements, diagonal: int = 0) -> Elements:
        def bounds(at: Indices) -> list[Bound]:
            across = at[-1] - at[-2]
            low, high = across.bounds()
            return [Bound(across, diagonal, high + 1) if upper else Bound(across, low, diagonal + 1)]

        return guarded(x, bounds, 0)

    return lowering


def _diag_embed(b: Build, x: Elements, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Elements:
    rank = len(b.shape)
    first, second = dim1 % rank, dim2 % rank
    body = remap(
        x, b.shape, lambda at: (*(i for d, i in enumerate(at) if d not in (first, second)), at[first] - max(-offset, 0))
    )
    return guarded(body, lambda at: (Bound(at[second] - at[first] - offset, 0, 1),), 0)


def _diag(b: Build, x: Elements, diagonal: int = 0) -> Elements:
    if x.rank == 1:
        return _diag_embed(b, x, diagonal)
    return remap(x, b.shape, lambda at: (at[0] + max(-diagonal, 0), at[0] + max(diagonal, 0)))


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "aten.cat.default": _cat,
        "aten.concat.default": _cat,
        "aten.concatenate.default": _cat,
        "aten.stack.default": _stack,
        "aten.constant_pad_nd.default": _constant_pad,
        "aten.pad.default": _pad,
        **{f"aten.reflection_pad{n}d.default": _fold_pad("reflect") for n in (1, 2, 3)},
        **{f"aten.replication_pad{n}d.default": _fold_pad("replicate") for n in (1, 2, 3)},
        "aten.tril.default": _triangle(upper=False),
        "aten.triu.default": _triangle(upper=True),
        "aten.diag_embed.default": _diag_embed,
        "aten.diag.default": _diag,
    }
)
"""By overload name."""
