"""Views and copies: the same elements at other indices, so they cost nothing once they are inlined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from egg.expert.index import Index, divide, modulo
from egg.expert.lower.build import Build, Lowering, Unsupported
from egg.expert.lower.elements import Elements, Indices, broadcast, filled, remap, reshape


def swapped(at: Indices, dim: int, index: Index) -> Indices:
    """Returns the indices with that of one dimension replaced."""
    return (*at[:dim], index, *at[dim + 1 :])


def permuted(x: Elements, order: Sequence[int]) -> Elements:
    """Returns the tensor with dimension `order[d]` of `x` as its dimension d."""
    shape = tuple(x.shape[d] for d in order)
    return remap(x, shape, lambda at: tuple(at[list(order).index(d)] for d in range(x.rank)))


def strided(x: Elements, dim: int, start: int, extent: int, step: int = 1) -> Elements:
    """Returns `extent` elements along `dim` from `start` in steps of `step`, which may be negative."""
    shape = (*x.shape[:dim], extent, *x.shape[dim + 1 :])
    return remap(x, shape, lambda at: swapped(at, dim, at[dim] * step + start))


def selected(x: Elements, dim: int, index: int) -> Elements:
    """Returns the tensor at one position of `dim`, without that dimension."""
    shape = (*x.shape[:dim], *x.shape[dim + 1 :])
    return remap(x, shape, lambda at: (*at[:dim], Index((), index), *at[dim:]))


def _same(b: Build, x: Elements, *_: object, **__: object) -> Elements:
    return x


def _reshape(b: Build, x: Elements, *_: object, **__: object) -> Elements:
    """Any operator that keeps the elements in row-major order: the shape is that of the result."""
    return reshape(x, b.shape)


def _permute(b: Build, x: Elements, dims: Sequence[int]) -> Elements:
    return permuted(x, [d % x.rank for d in dims])


def _transpose(b: Build, x: Elements, dim0: int, dim1: int) -> Elements:
    order = list(range(x.rank))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return permuted(x, order)


def _reversed_dims(b: Build, x: Elements) -> Elements:
    return permuted(x, range(x.rank)[::-1])


def _matrix_transpose(b: Build, x: Elements) -> Elements:
    return _transpose(b, x, -2, -1)


def _movedim(b: Build, x: Elements, source: int | Sequence[int], destination: int | Sequence[int]) -> Elements:
    sources = [d % x.rank for d in ((source,) if isinstance(source, int) else source)]
    targets = [d % x.rank for d in ((destination,) if isinstance(destination, int) else destination)]
    placed = dict(zip(targets, sources, strict=True))
    rest = iter(d for d in range(x.rank) if d not in sources)
    return permuted(x, [placed[d] if d in placed else next(rest) for d in range(x.rank)])


def _expand(b: Build, x: Elements, *_: object, **__: object) -> Elements:
    return broadcast(x, b.shape)


def _broadcast_tensors(b: Build, tensors: Sequence[Elements]) -> tuple[Elements, ...]:
    return tuple(broadcast(x, b.shape) for x in tensors)


def _slice(
    b: Build, x: Elements, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Elements:
    d = dim % x.rank
    first, last, _ = slice(start, end, step).indices(x.shape[d])
    return strided(x, d, first, len(range(first, last, step)), step)


def _select(b: Build, x: Elements, dim: int, index: int) -> Elements:
    d = dim % x.rank
    return selected(x, d, index % x.shape[d])


def _narrow(b: Build, x: Elements, dim: int, start: int | Elements, length: int) -> Elements:
    if not isinstance(start, int):
        raise Unsupported("a narrow whose start is a tensor")
    d = dim % x.rank
    return strided(x, d, start % x.shape[d] if start < 0 else start, length)


def _split(b: Build, x: Elements, *_: object, **__: object) -> tuple[Elements, ...]:
    """All kinds of splitting: the extents are those of the results."""
    extents = [b.spec(n).shape for n in range(b.results)]
    changed = [d for d in range(x.rank) if any(shape[d] != x.shape[d] for shape in extents)]
    if not changed:
        return (x,)
    dim, start, parts = changed[0], 0, list[Elements]()
    for shape in extents:
        parts.append(strided(x, dim, start, shape[dim]))
        start += shape[dim]
    return tuple(parts)


def _unbind(b: Build, x: Elements, dim: int = 0) -> tuple[Elements, ...]:
    d = dim % x.rank
    return tuple(selected(x, d, n) for n in range(x.shape[d]))


def _flip(b: Build, x: Elements, dims: Sequence[int]) -> Elements:
    for d in (d % x.rank for d in dims):
        x = strided(x, d, x.shape[d] - 1, x.shape[d], -1)
    return x


def _flip_dim(dim: int) -> Lowering:
    return lambda b, x: _flip(b, x, (dim,))


def _roll(b: Build, x: Elements, shifts: int | Sequence[int], dims: int | Sequence[int] = ()) -> Elements:
    amounts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    places = (dims,) if isinstance(dims, int) else tuple(dims)
    if not places:
        return reshape(_rolled(reshape(x, (x.numel,)), 0, amounts[0]), x.shape)
    for amount, dim in zip(amounts, places, strict=True):
        x = _rolled(x, dim % x.rank, amount)
    return x


def _rolled(x: Elements, dim: int, amount: int) -> Elements:
    extent = x.shape[dim]
    if not extent:
        return x
    return remap(x, x.shape, lambda at: swapped(at, dim, modulo(at[dim] + (-amount) % extent, extent)))


def _repeat(b: Build, x: Elements, *_: object) -> Elements:
    skip = len(b.shape) - x.rank

    def index(at: Indices) -> Indices:
        return tuple(modulo(i, e) if e else i for i, e in zip(at[skip:], x.shape, strict=True))

    return remap(x, b.shape, index)


def _repeat_interleave(
    b: Build, x: Elements, repeats: int, dim: int | None = None, *, output_size: int | None = None
) -> Elements:
    flat = reshape(x, (x.numel,)) if dim is None else x
    d = 0 if dim is None else dim % x.rank
    return remap(flat, b.shape, lambda at: swapped(at, d, divide(at[d], repeats)))


def _diagonal(b: Build, x: Elements, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Elements:
    first, second = dim1 % x.rank, dim2 % x.rank

    def index(at: Indices) -> Indices:
        along = {first: at[-1] + max(-offset, 0), second: at[-1] + max(offset, 0)}
        rest = iter(at[:-1])
        return tuple(along[d] if d in along else next(rest) for d in range(x.rank))

    return remap(x, b.shape, index)


def _unfold(b: Build, x: Elements, dimension: int, size: int, step: int) -> Elements:
    if not x.rank:
        return reshape(x, b.shape)
    d = dimension % x.rank
    return remap(x, b.shape, lambda at: swapped(at[:-1], d, at[d] * step + at[-1]))


def _pixel_shuffle(b: Build, x: Elements, factor: int) -> Elements:
    *_, channels, height, width = x.shape
    lead = x.shape[:-3]
    split = reshape(x, (*lead, channels // factor**2, factor, factor, height, width))
    n = len(lead)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return reshape(permuted(split, order), b.shape)


def _pixel_unshuffle(b: Build, x: Elements, factor: int) -> Elements:
    *_, channels, height, width = x.shape
    lead = x.shape[:-3]
    split = reshape(x, (*lead, channels, height // factor, factor, width // factor, factor))
    n = len(lead)
    return reshape(permuted(split, (*range(n), n, n + 2, n + 4, n + 1, n + 3)), b.shape)


def _channel_shuffle(b: Build, x: Elements, groups: int) -> Elements:
    samples, channels, *space = x.shape
    split = reshape(x, (samples, groups, channels // groups, *space))
    return reshape(permuted(split, (0, 2, 1, *range(3, split.rank))), x.shape)


def _dropout(b: Build, x: Elements, p: float, train: bool) -> Elements:
    if train and p == 1:
        return filled(0, x.dtype, x.shape)
    if train and p > 0:
        raise Unsupported("random")
    return x


def _native_dropout(b: Build, x: Elements, p: float, train: bool | None) -> tuple[Elements, Elements]:
    return _dropout(b, x, p, train is not False), filled(True, "bool", x.shape)


def _nearest(b: Build, x: Elements, *_: object, **__: object) -> Elements:
    """Upsampling to the nearest neighbour by whole factors."""
    factors = [o // i if i and o % i == 0 else 0 for o, i in zip(b.shape, x.shape, strict=True)]
    if 0 in factors:
        raise Unsupported("interpolation by a factor that is not whole")
    return remap(x, b.shape, lambda at: tuple(divide(i, f) for i, f in zip(at, factors, strict=True)))


_SAME = ("clone", "contiguous", "alias", "detach", "lift_fresh_copy", "lift_fresh", "resolve_conj", "resolve_neg")
_RESHAPES = (
    "view.default", "reshape.default", "_unsafe_view.default", "_reshape_alias.default", "squeeze.default",
    "squeeze.dim", "squeeze.dims", "unsqueeze.default", "flatten.using_ints", "unflatten.int", "ravel.default",
    "view_as.default", "reshape_as.default", "atleast_1d.default", "view_copy.default", "squeeze_copy.dim",
    "unsqueeze_copy.default",
)  # fmt: skip
_SPLITS = (
    "split.Tensor", "split.sizes", "split_with_sizes.default", "split_with_sizes_copy.default", "chunk.default",
    "tensor_split.sections", "tensor_split.indices", "unsafe_split.Tensor", "unsafe_chunk.default",
)  # fmt: skip

LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        **{f"aten.{name}.default": _same for name in _SAME},
        **{f"aten.{name}": _reshape for name in _RESHAPES},
        **{f"aten.{name}": _split for name in _SPLITS},
        "aten.permute.default": _permute,
        "aten.permute_copy.default": _permute,
        "aten.transpose.int": _transpose,
        "aten.swapaxes.default": _transpose,
        "aten.swapdims.default": _transpose,
        "aten.t.default": _reversed_dims,
        "aten.numpy_T.default": _reversed_dims,
        "aten.mT.default": _matrix_transpose,
        "aten.movedim.int": _movedim,
        "aten.movedim.intlist": _movedim,
        "aten.moveaxis.int": _movedim,
        "aten.expand.default": _expand,
        "aten.expand_copy.default": _expand,
        "aten.expand_as.default": _expand,
        "aten.broadcast_to.default": _expand,
        "aten.broadcast_tensors.default": _broadcast_tensors,
        "aten.slice.Tensor": _slice,
        "aten.slice_copy.Tensor": _slice,
        "aten.select.int": _select,
        "aten.select_copy.int": _select,
        "aten.narrow.default": _narrow,
        "aten.unbind.int": _unbind,
        "aten.flip.default": _flip,
        "aten.fliplr.default": _flip_dim(1),
        "aten.flipud.default": _flip_dim(0),
        "aten.roll.default": _roll,
        "aten.repeat.default": _repeat,
        "aten.tile.default": _repeat,
        "aten.repeat_interleave.self_int": _repeat_interleave,
        "aten.diagonal.default": _diagonal,
        "aten.unfold.default": _unfold,
        "aten.pixel_shuffle.default": _pixel_shuffle,
        "aten.pixel_unshuffle.default": _pixel_unshuffle,
        "aten.channel_shuffle.default": _channel_shuffle,
        "aten.dropout.default": _dropout,
        "aten.feature_dropout.default": _dropout,
        "aten.alpha_dropout.default": _dropout,
        "aten.native_dropout.default": _native_dropout,
        "aten.upsample_nearest1d.default": _nearest,
        "aten.upsample_nearest1d.vec": _nearest,
        "aten.upsample_nearest2d.default": _nearest,
        "aten.upsample_nearest2d.vec": _nearest,
        "aten.upsample_nearest3d.default": _nearest,
        "aten.upsample_nearest3d.vec": _nearest,
    }
)
"""By overload name."""
