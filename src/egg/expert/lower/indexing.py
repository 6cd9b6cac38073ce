"""Reads at positions that come from tensors: embeddings, gathers, simple index tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from egg.expert.lower.build import Build, Lowering, Unsupported
from egg.expert.lower.dtypes import INTEGER
from egg.expert.lower.elements import Elements, Indices, broadcast, broadcast_shape, cast, op, positions, remap, reshape
from egg.expert.lower.views import swapped


def _embedding(
    b: Build,
    weight: Elements,
    indices: Elements,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Elements:
    rows = b.index_source(indices)
    return remap(weight, b.shape, lambda at: (b.fetch(rows, at[:-1], weight.shape[0]), at[-1]))


def gathered(b: Build, x: Elements, dim: int, index: Elements) -> Elements:
    """Returns x[..., index[...], ...] along `dim`, one position for each element of `index`."""
    source = b.index_source(index)
    return remap(x, index.shape, lambda at: swapped(at, dim, b.fetch(source, at, x.shape[dim])))


def _gather(b: Build, x: Elements, dim: int, index: Elements, *, sparse_grad: bool = False) -> Elements:
    if not x.rank or not index.rank:
        raise Unsupported("a gather of one number")
    return gathered(b, x, dim % x.rank, index)


def _take_along_dim(b: Build, x: Elements, indices: Elements, dim: int | None = None) -> Elements:
    if dim is None:
        return gathered(b, reshape(x, (x.numel,)), 0, reshape(indices, (indices.numel,)))
    d = dim % x.rank
    shape = broadcast_shape(swap_extent(x.shape, d, 1), swap_extent(indices.shape, d, 1))
    wide = broadcast(x, swap_extent(shape, d, x.shape[d]))
    return gathered(b, wide, d, broadcast(indices, swap_extent(shape, d, indices.shape[d])))


def swap_extent(shape: Sequence[int], dim: int, extent: int) -> tuple[int, ...]:
    """Returns the shape with one extent replaced."""
    return (*shape[:dim], extent, *shape[dim + 1 :])


def _index_select(b: Build, x: Elements, dim: int, index: Elements) -> Elements:
    if not x.rank:
        return x
    d = dim % x.rank
    source = b.index_source(reshape(index, (index.numel,)))
    return remap(x, b.shape, lambda at: swapped(at, d, b.fetch(source, (at[d],), x.shape[d])))


def _index(b: Build, x: Elements, indices: Sequence[Elements | None]) -> Elements:
    """x[i, :, j, ...]: index tensors broadcast together; their dimensions stand where they were, or first if apart."""
    given = {d: i for d, i in enumerate(indices) if i is not None}
    if odd := sorted({i.dtype for i in given.values()} - INTEGER):
        raise Unsupported(f"an index of dtype {odd[0]}")
    shape = broadcast_shape(*(i.shape for i in given.values()))
    sources = {d: b.index_source(broadcast(i, shape)) for d, i in given.items()}
    together = list(given) == list(range(min(given), max(given) + 1))
    lead = min(given) if together else 0

    def at(out: Indices) -> Indices:
        inner = out[lead : lead + len(shape)]
        rest = iter((*out[:lead], *out[lead + len(shape) :]))
        return tuple(
            b.fetch(sources[d], inner, x.shape[d], wrap=True) if d in sources else next(rest) for d in range(x.rank)
        )

    return remap(x, b.shape, at)


def _one_hot(b: Build, x: Elements, num_classes: int = -1) -> Elements:
    column = positions(b.shape, lambda at: at[-1])
    return cast(op("eq", remap(cast(x, "int64"), b.shape, lambda at: at[:-1]), column), "int64")


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "aten.embedding.default": _embedding,
        "aten.gather.default": _gather,
        "aten.take_along_dim.default": _take_along_dim,
        "aten.index_select.default": _index_select,
        "aten.index.Tensor": _index,
        "aten._unsafe_index.Tensor": _index,
        "aten.one_hot.default": _one_hot,
    }
)
"""By overload name."""
