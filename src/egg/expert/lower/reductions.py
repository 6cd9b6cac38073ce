"""Reductions over any dimensions; variances take two passes, floating sums accumulate in float32 at least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType

from egg.expert.ir import ReduceKind, Scalar
from egg.expert.lower.build import Build, Lowering, Unsupported
from egg.expert.lower.dtypes import sum_dtype
from egg.expert.lower.elements import Elements, broadcast, cast, computed, op, reshape, truth
from egg.expert.lower.pointwise import operand, power

Dims = int | Sequence[int] | None


def dims_of(x: Elements, dim: Dims) -> tuple[int, ...]:
    """Returns the dimensions that `dim` names, ascending; None and an empty list name all."""
    if dim is None or (not isinstance(dim, int) and not dim):
        return tuple(range(x.rank))
    named = (dim,) if isinstance(dim, int) else tuple(dim)
    return tuple(sorted(d % x.rank for d in named)) if x.rank else ()


def count(x: Elements, dims: Sequence[int]) -> int:
    """Returns the number of elements that a reduction over `dims` combines."""
    return prod(x.shape[d] for d in dims)


def mean(b: Build, x: Elements, dims: Sequence[int], keepdim: bool, name: str = "mean") -> Elements:
    """Returns the mean over `dims`, defined under its own name; NaN where there is nothing to average."""
    return b.let(name, b.reduce("sum", x, dims, "sum", keepdim) / count(x, dims))


def squares(b: Build, x: Elements, center: Elements, dims: Sequence[int], keepdim: bool) -> Elements:
    """Returns the sum of squared distances to `center`, which kept its dimensions."""
    return b.reduce("sum", power(x - center, 2), dims, "squares", keepdim)


def _sum(b: Build, x: Elements, dim: Dims = None, keepdim: bool = False, *, dtype: str | None = None) -> Elements:
    return b.reduce("sum", cast(x, sum_dtype(b.dtype)), dims_of(x, dim), 0, keepdim)


def _prod(b: Build, x: Elements, dim: Dims = None, keepdim: bool = False, *, dtype: str | None = None) -> Elements:
    return b.reduce("prod", cast(x, sum_dtype(b.dtype)), dims_of(x, dim), 0, keepdim)


def _mean(b: Build, x: Elements, dim: Dims = None, keepdim: bool = False, *, dtype: str | None = None) -> Elements:
    v, dims = operand(x, b.dtype), dims_of(x, dim)
    return b.reduce("sum", v, dims, "sum", keepdim) / count(v, dims)


def _all_of(kind: ReduceKind) -> Lowering:
    """Reductions without dimensions of their own: over all elements by default."""

    def lowering(b: Build, x: Elements, dim: Dims = None, keepdim: bool = False) -> Elements:
        return b.reduce(kind, computed(x), dims_of(x, dim), 0, keepdim)

    return lowering


def _extreme_with_index(kind: ReduceKind, position: ReduceKind) -> Lowering:
    def lowering(b: Build, x: Elements, dim: int, keepdim: bool = False) -> tuple[Elements, Elements]:
        v, dims = computed(x), dims_of(x, dim)
        return b.reduce(kind, v, dims, 0, keepdim), b.reduce(position, v, dims, 1, keepdim)

    return lowering


def _truth_of(kind: ReduceKind) -> Lowering:
    def lowering(b: Build, x: Elements, dim: Dims = None, keepdim: bool = False) -> Elements:
        answer = "bool" if b.dtype == "bool" else "answer"
        return b.reduce(kind, truth(x), dims_of(x, dim), 0 if answer == "bool" else answer, keepdim)

    return lowering


def _count_nonzero(b: Build, x: Elements, dim: Dims = None) -> Elements:
    return b.reduce("sum", cast(truth(x), "int64"), dims_of(x, dim), 0)


def _moments(b: Build, x: Elements, dim: Dims, correction: Scalar, keepdim: bool) -> tuple[Elements, Elements]:
    """Returns variance and mean."""
    v, dims = operand(x, b.dtype), dims_of(x, dim)
    kept = mean(b, v, dims, True)
    freedom = max(count(v, dims) - correction, 0)
    variance = squares(b, v, kept, dims, keepdim) / freedom
    return variance, kept if keepdim else reshape(kept, variance.shape)


def _var(b: Build, x: Elements, dim: Dims = None, *, correction: Scalar | None = None, keepdim: bool = False):
    return _moments(b, x, dim, 1 if correction is None else correction, keepdim)[0]


def _std(b: Build, x: Elements, dim: Dims = None, *, correction: Scalar | None = None, keepdim: bool = False):
    return op("sqrt", _var(b, x, dim, correction=correction, keepdim=keepdim))


def _var_mean(b: Build, x: Elements, dim: Dims = None, *, correction: Scalar | None = None, keepdim: bool = False):
    return _moments(b, x, dim, 1 if correction is None else correction, keepdim)


def _std_mean(b: Build, x: Elements, dim: Dims = None, *, correction: Scalar | None = None, keepdim: bool = False):
    variance, center = _var_mean(b, x, dim, correction=correction, keepdim=keepdim)
    return op("sqrt", variance), center


def _with_unbiased(lowering: Lowering) -> Lowering:
    """The older overloads, which say `unbiased` for a correction of 1."""

    def all_dims(b: Build, x: Elements, unbiased: bool = True) -> object:
        return lowering(b, x, None, correction=int(unbiased))

    return all_dims  # pyright: ignore[reportReturnType]


def _with_unbiased_dim(lowering: Lowering) -> Lowering:
    def some_dims(b: Build, x: Elements, dim: Dims, unbiased: bool = True, keepdim: bool = False) -> object:
        return lowering(b, x, dim, correction=int(unbiased), keepdim=keepdim)

    return some_dims  # pyright: ignore[reportReturnType]


def vector_norm(b: Build, x: Elements, order: Scalar, dims: Sequence[int], keepdim: bool) -> Elements:
    """Returns the norm of that order over `dims`."""
    size = op("abs", x)
    if order == float("inf") or order == -float("inf"):
        return b.reduce("max" if order > 0 else "min", size, dims, "norm", keepdim)
    if order == 0:
        return b.reduce("sum", cast(op("ne", x, 0), x.dtype), dims, "norm", keepdim)
    if order == 1:
        return b.reduce("sum", size, dims, "norm", keepdim)
    if order == 2:
        return op("sqrt", b.reduce("sum", x * x, dims, "squares", keepdim))
    return power(b.reduce("sum", power(size, order), dims, "powers", keepdim), 1 / order)


def _vector_norm(
    b: Build, x: Elements, ord: Scalar = 2, dim: Dims = None, keepdim: bool = False, *, dtype: str | None = None
) -> Elements:
    if not x.numel and ord in (float("inf"), -float("inf")):
        raise Unsupported("the extreme of an empty tensor")
    return vector_norm(b, operand(x, b.dtype), ord, dims_of(x, dim), keepdim)


def _norm(
    b: Build, x: Elements, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, *, dtype: str | None = None
) -> Elements:
    return _vector_norm(b, x, 2 if p is None else p, dim, keepdim)


def _frobenius_norm(b: Build, x: Elements, dim: Dims = None, keepdim: bool = False) -> Elements:
    return _vector_norm(b, x, 2, dim, keepdim)


def _cosine_similarity(b: Build, x: Elements, y: Elements, dim: int = 1, eps: float = 1e-8) -> Elements:
    left, right = operand(x, b.dtype), operand(y, b.dtype)
    product = left * right
    dims = dims_of(product, dim)
    dot = b.reduce("sum", product, dims, "dot")
    spread = [broadcast(v, product.shape) for v in (left, right)]
    norms = [op("maximum", op("sqrt", b.reduce("sum", v * v, dims, "squares")), eps) for v in spread]
    return dot / (norms[0] * norms[1])


def _pairwise_distance(
    b: Build, x: Elements, y: Elements, p: float = 2, eps: float = 1e-6, keepdim: bool = False
) -> Elements:
    difference = operand(x, b.dtype) - operand(y, b.dtype) + eps
    return vector_norm(b, difference, p, (difference.rank - 1,), keepdim)


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "aten.sum.default": _sum,
        "aten.sum.dim_IntList": _sum,
        "aten.prod.default": _prod,
        "aten.prod.dim_int": _prod,
        "aten.mean.default": _mean,
        "aten.mean.dim": _mean,
        "aten.amax.default": _all_of("max"),
        "aten.amin.default": _all_of("min"),
        "aten.max.default": _all_of("max"),
        "aten.min.default": _all_of("min"),
        "aten.max.dim": _extreme_with_index("max", "argmax"),
        "aten.min.dim": _extreme_with_index("min", "argmin"),
        "aten.argmax.default": _all_of("argmax"),
        "aten.argmin.default": _all_of("argmin"),
        "aten.any.default": _truth_of("any"),
        "aten.any.dim": _truth_of("any"),
        "aten.any.dims": _truth_of("any"),
        "aten.all.default": _truth_of("all"),
        "aten.all.dim": _truth_of("all"),
        "aten.all.dims": _truth_of("all"),
        "aten.count_nonzero.default": _count_nonzero,
        "aten.count_nonzero.dim_IntList": _count_nonzero,
        "aten.var.correction": _var,
        "aten.std.correction": _std,
        "aten.var_mean.correction": _var_mean,
        "aten.std_mean.correction": _std_mean,
        "aten.var.default": _with_unbiased(_var),
        "aten.std.default": _with_unbiased(_std),
        "aten.var_mean.default": _with_unbiased(_var_mean),
        "aten.std_mean.default": _with_unbiased(_std_mean),
        "aten.var.dim": _with_unbiased_dim(_var),
        "aten.std.dim": _with_unbiased_dim(_std),
        "aten.var_mean.dim": _with_unbiased_dim(_var_mean),
        "aten.std_mean.dim": _with_unbiased_dim(_std_mean),
        "aten.linalg_vector_norm.default": _vector_norm,
        "aten.norm.Scalar": _norm,
        "aten.norm.ScalarOpt_dim": _norm,
        "aten.norm.ScalarOpt_dim_dtype": _norm,
        "aten.norm.ScalarOpt_dtype": _norm,
        "aten.frobenius_norm.dim": _frobenius_norm,
        "aten.cosine_similarity.default": _cosine_similarity,
        "aten.pairwise_distance.default": _pairwise_distance,
    }
)
"""By overload name."""
