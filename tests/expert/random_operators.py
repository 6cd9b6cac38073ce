"""The operators that random graphs are made of. Domains are kept by what each applies to its operand first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

Values = dict[str, Tensor]


@dataclass(frozen=True)
class Drawn:
    """An operator with its numbers, and the names of its operands; `extras` become arguments of the module."""

    function: Callable[..., Tensor]
    operands: tuple[str, ...]
    extras: tuple[Tensor, ...] = ()

    def operands_with(self, args: int) -> tuple[str, ...]:
        """Returns the operands followed by the extras, which are the last of `args` arguments."""
        return (*self.operands, *(f"a{args - len(self.extras) + n}" for n in range(len(self.extras))))


Draw = Callable[[st.DrawFn, str, Values, torch.Generator], Drawn | None]


@dataclass(frozen=True)
class Operator:
    """How an operator is drawn for a value; None where it does not fit."""

    name: str
    draw: Draw
    moves: bool = False
    """Whether the result holds elements of the operands unchanged."""


def unary(name: str, function: Callable[[Tensor], Tensor], moves: bool = False) -> Operator:
    return Operator(name, lambda draw, x, values, generator: Drawn(function, (x,)), moves)


def binary(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> Operator:
    def drawn(draw: st.DrawFn, x: str, values: Values, generator: torch.Generator) -> Drawn | None:
        fitting = [n for n, v in values.items() if _broadcasts(values[x], v)]
        return Drawn(function, (x, draw(st.sampled_from(fitting)))) if fitting else None

    return Operator(name, drawn)


def over_dims(name: str, function: Callable[[Tensor, tuple[int, ...], bool], Tensor]) -> Operator:
    """A reduction over some dimensions, kept or not."""

    def drawn(draw: st.DrawFn, x: str, values: Values, generator: torch.Generator) -> Drawn | None:
        rank = values[x].dim()
        if not rank:
            return None
        dims = tuple(draw(st.lists(st.integers(-rank, -1), min_size=1, unique=True)))
        keep = draw(st.booleans())
        return Drawn(lambda v: function(v, dims, keep), (x,))

    return Operator(name, drawn)


def over_dim(name: str, function: Callable[[Tensor, int], Tensor], moves: bool = False) -> Operator:
    """An operator along one dimension."""

    def drawn(draw: st.DrawFn, x: str, values: Values, generator: torch.Generator) -> Drawn | None:
        rank = values[x].dim()
        if not rank:
            return None
        dim = draw(st.integers(-rank, rank - 1))
        return Drawn(lambda v: function(v, dim), (x,))

    return Operator(name, drawn, moves)


def for_rank(name: str, ranks: tuple[int, ...], make: Callable[[Tensor, torch.Generator], Any]) -> Operator:
    """A function or layer that is made for the shape of its operand; None where it does not fit."""

    def drawn(draw: st.DrawFn, x: str, values: Values, generator: torch.Generator) -> Drawn | None:
        function = make(values[x], generator) if values[x].dim() in ranks else None
        return None if function is None else Drawn(function, (x,))

    return Operator(name, drawn)


def _broadcasts(x: Tensor, y: Tensor) -> bool:
    try:
        shape = torch.broadcast_shapes(x.shape, y.shape)
    except RuntimeError:
        return False
    return prod(shape) <= 20_000


def _weighted(layer: nn.Module, generator: torch.Generator) -> nn.Module:
    for tensor in (*layer.parameters(), *layer.buffers()):
        if tensor.is_floating_point():
            tensor.data = torch.rand(tensor.shape, generator=generator) + 0.5
    return layer


def _layer_norm(x: Tensor, generator: torch.Generator) -> nn.Module | None:
    return _weighted(nn.LayerNorm(x.shape[-1]), generator) if x.shape[-1] > 2 else None


def _rms_norm(x: Tensor, generator: torch.Generator) -> nn.Module:
    return _weighted(nn.RMSNorm(x.shape[-1], eps=1e-5), generator)


def _group_norm(x: Tensor, generator: torch.Generator) -> nn.Module | None:
    channels = x.shape[1]
    groups = next(g for g in (4, 3, 2, 1) if channels % g == 0)
    return _weighted(nn.GroupNorm(groups, channels), generator) if x[0].numel() // groups > 3 else None


def _batch_norm(training: bool) -> Callable[[Tensor, torch.Generator], nn.Module | None]:
    def make(x: Tensor, generator: torch.Generator) -> nn.Module | None:
        kind = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[x.dim()]
        layer = _weighted(kind(x.shape[1]), generator).train(training)
        return layer if x.numel() // x.shape[1] > 3 else None

    return make


def _instance_norm(x: Tensor, generator: torch.Generator) -> nn.Module | None:
    kind = {3: nn.InstanceNorm1d, 4: nn.InstanceNorm2d}[x.dim()]
    return kind(x.shape[1]) if x[0, 0].numel() > 3 else None


def _linear(x: Tensor, generator: torch.Generator) -> nn.Module:
    layer = nn.Linear(x.shape[-1], 5)
    for tensor in layer.parameters():
        tensor.data = torch.randn(tensor.shape, generator=generator) / x.shape[-1] ** 0.5
    return layer


def _permuted(draw: st.DrawFn, x: str, values: Values, generator: torch.Generator) -> Drawn:
    order = tuple(draw(st.permutations(range(values[x].dim()))))
    return Drawn(lambda v: v.permute(order), (x,))


def _reshaped(draw: st.DrawFn, x: str, values: Values, generator: torch.Generator) -> Drawn:
    left = values[x].numel()
    shape: list[int] = []
    while left > 1 and len(shape) < 3:
        factor = draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0]))
        shape.append(factor)
        left //= factor
    return Drawn(lambda v: v.reshape(*shape, left), (x,))


def _sliced(draw: st.DrawFn, x: str, values: Values, generator: torch.Generator) -> Drawn | None:
    value = values[x]
    if not value.dim():
        return None
    dim = draw(st.integers(0, value.dim() - 1))
    start = draw(st.integers(0, value.shape[dim] - 1))
    step = draw(st.integers(1, 3))
    return Drawn(lambda v: v[(slice(None),) * dim + (slice(start, None, step),)], (x,))


def _index_selected(draw: st.DrawFn, x: str, values: Values, generator: torch.Generator) -> Drawn | None:
    value = values[x]
    if not value.dim():
        return None
    dim = draw(st.integers(0, value.dim() - 1))
    index = torch.randint(0, value.shape[dim], (draw(st.integers(1, 6)),), generator=generator)
    return Drawn(lambda v, i: v.index_select(dim, i), (x,), (index,))


def _gathered(draw: st.DrawFn, x: str, values: Values, generator: torch.Generator) -> Drawn | None:
    value = values[x]
    if not value.dim():
        return None
    dim = draw(st.integers(0, value.dim() - 1))
    return Drawn(
        lambda v, i: v.gather(dim, i), (x,), (torch.randint(0, value.shape[dim], value.shape, generator=generator),)
    )


def _cross_entropy(draw: st.DrawFn, x: str, values: Values, generator: torch.Generator) -> Drawn | None:
    value = values[x]
    if value.dim() < 2:
        return None
    target = torch.randint(0, value.shape[1], (value.shape[0], *value.shape[2:]), generator=generator)
    mode, smoothing = draw(st.sampled_from(("none", "mean", "sum"))), draw(st.sampled_from((0.0, 0.1)))
    return Drawn(lambda v, t: F.cross_entropy(v, t, reduction=mode, label_smoothing=smoothing), (x,), (target,))


def _positive(x: Tensor) -> Tensor:
    return x.abs() + 0.5


def _unit(x: Tensor) -> Tensor:
    return x.tanh() * 0.8


_SMOOTH = ("exp", "expm1", "sinh", "cosh", "tan", "exp2")
_ANYWHERE = ("sin", "cos", "tanh", "atan", "asinh", "sigmoid", "erf", "erfc", "abs", "neg", "square", "relu")
_OF_POSITIVE = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal")
_OF_UNIT = ("asin", "acos", "atanh")
_ROUNDING = ("floor", "ceil", "round", "trunc", "sign")
_ACTIVATIONS = (
    F.relu6, F.hardtanh, F.leaky_relu, F.elu, F.selu, F.celu, F.gelu, F.silu, F.mish, F.softplus, F.hardswish,
    F.hardsigmoid, F.softsign, F.softshrink, F.tanhshrink, F.logsigmoid,
)  # fmt: skip

OPERATORS: tuple[Operator, ...] = (
    *(unary(n, lambda x, n=n: getattr(torch, n)(x)) for n in _ANYWHERE),
    *(unary(n, lambda x, n=n: getattr(torch, n)(_unit(x))) for n in (*_SMOOTH, *_OF_UNIT)),
    *(unary(n, lambda x, n=n: getattr(torch, n)(_positive(x))) for n in _OF_POSITIVE),
    *(unary(n, lambda x, n=n: getattr(torch, n)(x * 3)) for n in _ROUNDING),
    unary("acosh", lambda x: torch.acosh(_positive(x) + 1)),
    *(unary(f.__name__, f) for f in _ACTIVATIONS),
    unary("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")),
    unary("affine", lambda x: 1.5 - x * 0.75 / 2),
    unary("clamp", lambda x: x.clamp(-0.8, 1.2)),
    unary("powers", lambda x: x**2 - x**3 / 4 + _positive(x) ** 0.5 + _positive(x) ** -1.3),
    unary("masked", lambda x: torch.where(x > 0.1, x * 2, x - 1)),
    unary("remainder", lambda x: torch.remainder(x, 0.7) + torch.fmod(x, 0.9)),
    unary("to_double", lambda x: x.double()),
    unary("through_bfloat16", lambda x: x.bfloat16().float()),
    binary("add", torch.add),
    binary("sub_alpha", lambda x, y: torch.sub(x, y, alpha=0.5)),
    binary("mul", torch.mul),
    binary("div", lambda x, y: x / _positive(y)),
    binary("maximum", torch.maximum),
    binary("minimum", torch.minimum),
    binary("lerp", lambda x, y: torch.lerp(x, y.to(x.dtype), 0.3)),
    binary("addcmul", lambda x, y: torch.addcmul(x, y, y, value=0.5)),
    binary("atan2", lambda x, y: torch.atan2(x, _positive(y))),
    binary("pow", lambda x, y: _positive(x) ** _unit(y)),
    binary("select", lambda x, y: torch.where(x > y, x, y * 2)),
    binary("compared", lambda x, y: (x >= y).to(x.dtype) - (x != y).to(x.dtype)),
    over_dims("sum", lambda x, dims, keep: x.sum(dims, keep)),
    over_dims("mean", lambda x, dims, keep: x.mean(dims, keep)),
    over_dims("amax", lambda x, dims, keep: x.amax(dims, keep)),
    over_dims("amin", lambda x, dims, keep: x.amin(dims, keep)),
    over_dims("var", lambda x, dims, keep: x.var(dims, correction=0, keepdim=keep)),
    over_dims("std", lambda x, dims, keep: (x.var(dims, correction=0, keepdim=keep) + 0.1).sqrt()),
    over_dims("logsumexp", lambda x, dims, keep: x.logsumexp(dims, keep)),
    over_dims("norm", lambda x, dims, keep: torch.linalg.vector_norm(x, dim=dims, keepdim=keep)),
    over_dims("norm1", lambda x, dims, keep: torch.linalg.vector_norm(x, 1, dim=dims, keepdim=keep)),
    over_dims("norm_inf", lambda x, dims, keep: torch.linalg.vector_norm(x, float("inf"), dim=dims, keepdim=keep)),
    over_dims("any", lambda x, dims, keep: (x > 0.5).any(dims, keep).to(x.dtype)),
    over_dim("prod", lambda x, dim: (_unit(x) + 1).prod(dim)),
    over_dim("max", lambda x, dim: x.max(dim).values),
    over_dim("argmax", lambda x, dim: x.argmax(dim).to(x.dtype)),
    over_dim("softmax", torch.softmax),
    over_dim("log_softmax", torch.log_softmax),
    over_dim("cumsum", torch.cumsum),
    over_dim("cumprod", lambda x, dim: (_unit(x) * 0.3 + 1).cumprod(dim)),
    over_dim("logcumsumexp", torch.logcumsumexp),
    over_dim("reverse_cumsum", lambda x, dim: x.flip(dim).cumsum(dim).flip(dim)),
    over_dim("normalize", lambda x, dim: F.normalize(x, dim=dim)),
    over_dim("flip", lambda x, dim: x.flip(dim), moves=True),
    over_dim("roll", lambda x, dim: x.roll(1, dim), moves=True),
    over_dim("double", lambda x, dim: torch.cat([x, x * 0.5], dim)),
    over_dim("stack", lambda x, dim: torch.stack([x, x + 1], dim)),
    over_dim("halves", lambda x, dim: x.chunk(2, dim)[-1], moves=True),
    over_dim("select_last", lambda x, dim: x.select(dim, -1), moves=True),
    unary("unsqueeze", lambda x: x.unsqueeze(0), moves=True),
    unary("squeeze", lambda x: x.squeeze(), moves=True),
    Operator("permute", _permuted, moves=True),
    Operator("reshape", _reshaped, moves=True),
    Operator("slice", _sliced, moves=True),
    Operator("index_select", _index_selected, moves=True),
    Operator("gather", _gathered, moves=True),
    for_rank("pad", (1, 2, 3, 4), lambda x, g: lambda v: F.pad(v, (1, 2), value=0.25)),
    for_rank("reflect", (2, 3), lambda x, g: (lambda v: F.pad(v, (1, 1), mode="reflect")) if x.shape[-1] > 1 else None),
    for_rank("tril", (2, 3, 4), lambda x, g: lambda v: v.tril() - v.triu(1)),
    for_rank("layer_norm", (1, 2, 3, 4), _layer_norm),
    for_rank("rms_norm", (1, 2, 3, 4), _rms_norm),
    for_rank("group_norm", (2, 3, 4), _group_norm),
    for_rank("batch_norm", (2, 3, 4), _batch_norm(True)),
    for_rank("batch_norm_eval", (2, 3, 4), _batch_norm(False)),
    for_rank("instance_norm", (3, 4), _instance_norm),
    for_rank("avg_pool1d", (2, 3), lambda x, g: (lambda v: F.avg_pool1d(v, 3, 2, 1)) if x.shape[-1] > 1 else None),
    for_rank("max_pool1d", (2, 3), lambda x, g: (lambda v: F.max_pool1d(v, 2, 1)) if x.shape[-1] > 1 else None),
    for_rank("avg_pool2d", (4,), lambda x, g: lambda v: F.avg_pool2d(v, 3, 2, 1, count_include_pad=False)),
    for_rank("max_pool2d", (4,), lambda x, g: lambda v: F.max_pool2d(v, 3, 2, 1)),
    for_rank("adaptive", (4,), lambda x, g: lambda v: F.adaptive_avg_pool2d(v, (2, 3))),
    for_rank("glu", (1, 2, 3, 4), lambda x, g: F.glu if x.shape[-1] % 2 == 0 else None),
    for_rank("linear", (1, 2, 3), _linear),
    for_rank("gram", (2, 3), lambda x, g: lambda v: v @ v.transpose(-1, -2) / v.shape[-1]),
    binary("mse_loss", lambda x, y: F.mse_loss(*torch.broadcast_tensors(x, y))),
    binary("huber_loss", lambda x, y: F.huber_loss(*torch.broadcast_tensors(x, y), reduction="sum")),
    binary("kl_div", lambda x, y: F.kl_div(*torch.broadcast_tensors(x, _positive(y)), reduction="none")),
    binary("bce", lambda x, y: F.binary_cross_entropy_with_logits(*torch.broadcast_tensors(x, y.sigmoid()))),
    Operator("cross_entropy", _cross_entropy),
)  # fmt: skip
"""Every operator that a random graph may hold."""
