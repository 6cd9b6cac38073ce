"""Normalisations. Statistics take two passes and are kept in float32 at least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from egg.expert.index import divide, modulo
from egg.expert.lower.build import Build, Lowering, Unsupported
from egg.expert.lower.elements import Elements, cast, computed, filled, op, remap, reshape
from egg.expert.lower.reductions import count, mean, squares

_EPSILON = {"float64": 2.220446049250313e-16, "float16": 0.0009765625, "bfloat16": 0.0078125}


def statistics(b: Build, x: Elements, dims: Sequence[int], eps: float) -> tuple[Elements, Elements, Elements]:
    """Returns mean, biased variance and 1 / sqrt(variance + eps) over `dims`, which stay with extent 1."""
    center = mean(b, x, dims, True)
    variance = squares(b, x, center, dims, True) / count(x, dims)
    return center, variance, b.let("rstd", op("rsqrt", variance + eps))


def affine(x: Elements, weight: Elements | None, bias: Elements | None) -> Elements:
    """Returns x * weight + bias; both broadcast, and either may be absent."""
    if weight is not None:
        x = x * cast(weight, x.dtype)
    return x if bias is None else x + cast(bias, x.dtype)


def _by_channel(p: Elements | None, rank: int) -> Elements | None:
    """Returns a vector over channels as a tensor that broadcasts with (N, C, ...)."""
    if p is None:
        return None
    return remap(p, (1, p.shape[0]) + (1,) * (rank - 2), lambda at: (at[1],))


def _layer_norm(
    b: Build,
    x: Elements,
    normalized_shape: Sequence[int],
    weight: Elements | None = None,
    bias: Elements | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> tuple[Elements, Elements, Elements]:
    v = computed(x)
    dims = range(v.rank - len(normalized_shape), v.rank)
    center, _, rstd = statistics(b, v, dims, eps)
    return affine((v - center) * rstd, weight, bias), center, rstd


def _layer_norm_single(b: Build, *args: object, **kwargs: object) -> Elements:
    return _layer_norm(b, *args, **kwargs)[0]  # pyright: ignore[reportArgumentType]


def _rms_norm(
    b: Build, x: Elements, normalized_shape: Sequence[int], weight: Elements | None = None, eps: float | None = None
) -> tuple[Elements, Elements]:
    v = computed(x)
    dims = range(v.rank - len(normalized_shape), v.rank)
    small = _EPSILON.get(x.dtype, 1.1920928955078125e-07) if eps is None else eps
    average = b.reduce("sum", v * v, dims, "squares", True) / count(v, dims)
    rstd = b.let("rstd", op("rsqrt", average + small))
    return affine(v * rstd, weight, None), rstd


def _rms_norm_single(b: Build, *args: object, **kwargs: object) -> Elements:
    return _rms_norm(b, *args, **kwargs)[0]  # pyright: ignore[reportArgumentType]


def _group_norm(
    b: Build,
    x: Elements,
    num_groups: int,
    weight: Elements | None = None,
    bias: Elements | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> tuple[Elements, Elements, Elements]:
    v = computed(x)
    samples, channels, *space = v.shape
    size = channels // num_groups
    groups = remap(v, (samples, num_groups, size, *space), lambda at: (at[0], at[1] * size + at[2], *at[3:]))
    center, _, rstd = statistics(b, groups, range(2, groups.rank), eps)
    normal = (groups - center) * rstd
    back = remap(normal, v.shape, lambda at: (at[0], divide(at[1], size), modulo(at[1], size), *at[2:]))
    out = affine(back, _by_channel(weight, v.rank), _by_channel(bias, v.rank))
    return out, reshape(center, (samples, num_groups)), reshape(rstd, (samples, num_groups))


def _group_norm_single(b: Build, *args: object, **kwargs: object) -> Elements:
    return _group_norm(b, *args, **kwargs)[0]  # pyright: ignore[reportArgumentType]


def _native_group_norm(
    b: Build,
    x: Elements,
    weight: Elements | None,
    bias: Elements | None,
    samples: int,
    channels: int,
    space: int,
    groups: int,
    eps: float,
) -> tuple[Elements, Elements, Elements]:
    return _group_norm(b, x, groups, weight, bias, eps)


def _normalised(
    x: Elements, center: Elements, rstd: Elements, weight: Elements | None, bias: Elements | None
) -> Elements:
    scaled = (x - center) * rstd
    return affine(scaled, _by_channel(weight, x.rank), _by_channel(bias, x.rank))


def _with_running(
    b: Build,
    x: Elements,
    weight: Elements | None,
    bias: Elements | None,
    running_mean: Elements | None,
    running_var: Elements | None,
    eps: float,
) -> Elements:
    center, variance = _by_channel(running_mean, x.rank), _by_channel(running_var, x.rank)
    if center is None or variance is None:
        raise Unsupported("running statistics are missing")
    rstd = b.let("rstd", op("rsqrt", cast(variance, x.dtype) + eps))
    return _normalised(x, cast(center, x.dtype), rstd, weight, bias)


def _instance_norm(
    b: Build,
    x: Elements,
    weight: Elements | None,
    bias: Elements | None,
    running_mean: Elements | None,
    running_var: Elements | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Elements:
    v = computed(x)
    if not use_input_stats:
        return _with_running(b, v, weight, bias, running_mean, running_var, eps)
    if running_mean is not None:
        raise Unsupported("an instance norm that updates running statistics in place")
    center, _, rstd = statistics(b, v, range(2, v.rank), eps)
    return _normalised(v, center, rstd, weight, bias)


def _batch_norm_functional(
    b: Build,
    x: Elements,
    weight: Elements | None,
    bias: Elements | None,
    running_mean: Elements | None,
    running_var: Elements | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Elements, *tuple[Elements | None, ...]]:
    v = computed(x)
    if not training:
        out = _with_running(b, v, weight, bias, running_mean, running_var, eps)
        empty = filled(0, v.dtype, (0,))
        return out, empty, empty, running_mean, running_var
    dims = (0, *range(2, v.rank))
    center, variance, rstd = statistics(b, v, dims, eps)
    out = _normalised(v, center, rstd, weight, bias)
    flat = [reshape(s, (v.shape[1],)) for s in (center, variance, rstd)]
    number = count(v, dims)
    unbiased = flat[1] * (number / (number - 1) if number > 1 else float("nan"))
    moved = [_moved(old, new, momentum) for old, new in ((running_mean, flat[0]), (running_var, unbiased))]
    return out, flat[0], flat[2], *moved


def _moved(old: Elements | None, new: Elements, momentum: float) -> Elements | None:
    """Returns a running statistic one step further."""
    return None if old is None else cast(old, new.dtype) * (1 - momentum) + new * momentum


def _batch_norm_no_stats(
    b: Build,
    x: Elements,
    weight: Elements | None,
    bias: Elements | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Elements | None, ...]:
    return _batch_norm_functional(b, x, weight, bias, None, None, training, momentum, eps)[:3]


def _batch_norm_no_training(
    b: Build,
    x: Elements,
    weight: Elements | None,
    bias: Elements | None,
    running_mean: Elements,
    running_var: Elements,
    momentum: float,
    eps: float,
) -> tuple[Elements | None, ...]:
    return _batch_norm_functional(b, x, weight, bias, running_mean, running_var, False, momentum, eps)[:3]


def _batch_norm(
    b: Build,
    x: Elements,
    weight: Elements | None,
    bias: Elements | None,
    running_mean: Elements | None,
    running_var: Elements | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Elements:
    if training and running_mean is not None:
        raise Unsupported("a batch norm that updates running statistics in place")
    out, *_ = _batch_norm_functional(b, x, weight, bias, running_mean, running_var, training, momentum, eps)
    return out


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "aten.layer_norm.default": _layer_norm_single,
        "aten.native_layer_norm.default": _layer_norm,
        "aten.rms_norm.default": _rms_norm_single,
        "aten._fused_rms_norm.default": _rms_norm,
        "aten.group_norm.default": _group_norm_single,
        "aten.native_group_norm.default": _native_group_norm,
        "aten.instance_norm.default": _instance_norm,
        "aten.batch_norm.default": _batch_norm,
        "aten._native_batch_norm_legit_functional.default": _batch_norm_functional,
        "aten._native_batch_norm_legit.no_stats": _batch_norm_no_stats,
        "aten._native_batch_norm_legit_no_training.default": _batch_norm_no_training,
    }
)
"""By overload name."""
