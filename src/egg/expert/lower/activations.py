"""Activation functions. Formulas and branches are PyTorch's, so NaN and infinities go the same way."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from types import MappingProxyType

from egg.expert.index import Index
from egg.expert.lower.build import Build, Lowering, Unsupported
from egg.expert.lower.elements import Elements, broadcast, computed, op, remap
from egg.expert.lower.pointwise import clamped

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def relu(x: Elements) -> Elements:
    """Returns max(x, 0); NaN stays."""
    return op("maximum", x, 0)


def softplus(x: Elements, beta: float = 1, threshold: float = 20) -> Elements:
    """Returns log(1 + exp(beta x)) / beta, and x itself where beta x exceeds the threshold."""
    scaled = x if beta == 1 else x * beta
    smooth = op("log1p", op("exp", scaled))
    return op("where", op("gt", scaled, threshold), x, smooth if beta == 1 else smooth / beta)


def _relu(b: Build, x: Elements) -> Elements:
    return relu(computed(x))


def _relu6(b: Build, x: Elements) -> Elements:
    return clamped(computed(x), 0, 6)


def _hardtanh(b: Build, x: Elements, min_val: float = -1, max_val: float = 1) -> Elements:
    return clamped(computed(x), min_val, max_val)


def _leaky_relu(b: Build, x: Elements, negative_slope: float = 0.01) -> Elements:
    v = computed(x)
    return op("where", op("gt", v, 0), v, v * negative_slope)


def _rrelu(
    b: Build, x: Elements, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator: None = None
) -> Elements:
    if training:
        raise Unsupported("random")
    return _leaky_relu(b, x, (lower + upper) / 2)


def elu(x: Elements, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Elements:
    """Returns scale x for positive x, else scale alpha (exp(input_scale x) - 1)."""
    inner = x if input_scale == 1 else x * input_scale
    factor = alpha * scale
    low = op("expm1", inner)
    return op("where", op("gt", x, 0), x if scale == 1 else x * scale, low if factor == 1 else low * factor)


def _elu(b: Build, x: Elements, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Elements:
    return elu(computed(x), alpha, scale, input_scale)


def _selu(b: Build, x: Elements) -> Elements:
    return elu(computed(x), _SELU_ALPHA, _SELU_SCALE)


def _celu(b: Build, x: Elements, alpha: float = 1) -> Elements:
    return elu(computed(x), alpha, 1, 1 / alpha)


def _gelu(b: Build, x: Elements, *, approximate: str = "none") -> Elements:
    v = computed(x)
    if approximate == "tanh":
        return v * 0.5 * (1 + op("tanh", (v + v * v * v * 0.044715) * sqrt(2 / 3.141592653589793)))
    return v * op("normal_cdf", v)


def _silu(b: Build, x: Elements) -> Elements:
    v = computed(x)
    return v * op("sigmoid", v)


def _mish(b: Build, x: Elements) -> Elements:
    v = computed(x)
    return v * op("tanh", op("log1p", op("exp", v)))


def _softplus(b: Build, x: Elements, beta: float = 1, threshold: float = 20) -> Elements:
    return softplus(computed(x), beta, threshold)


def _hardsigmoid(b: Build, x: Elements) -> Elements:
    return clamped(computed(x) + 3, 0, 6) / 6


def _hardswish(b: Build, x: Elements) -> Elements:
    v = computed(x)
    return v * clamped(v + 3, 0, 6) / 6


def _softsign(b: Build, x: Elements) -> Elements:
    v = computed(x)
    return v / (1 + op("abs", v))


def _softshrink(b: Build, x: Elements, lambd: float = 0.5) -> Elements:
    v = computed(x)
    inside = op("where", op("lt", v, -lambd), v + lambd, v * 0)
    return op("where", op("gt", v, lambd), v - lambd, inside)


def _hardshrink(b: Build, x: Elements, lambd: float = 0.5) -> Elements:
    v = computed(x)
    inside = op("logical_and", op("ge", v, -lambd), op("le", v, lambd))
    return op("where", inside, 0, v)


def _threshold(b: Build, x: Elements, threshold: float, value: float) -> Elements:
    v = computed(x)
    return op("where", op("le", v, threshold), value, v)


def log_sigmoid(x: Elements) -> Elements:
    """Returns min(x, 0) - log(1 + exp(-|x|))."""
    return op("minimum", x, 0) - op("log1p", op("exp", -op("abs", x)))


def _log_sigmoid(b: Build, x: Elements) -> tuple[Elements, None]:
    return log_sigmoid(computed(x)), None


def _prelu(b: Build, x: Elements, weight: Elements) -> Elements:
    v, w = computed(x), computed(weight)
    if w.numel == 1:
        slope = broadcast(remap(w, (), lambda _: (Index(),) * w.rank), v.shape)
    elif v.rank == 1:
        slope = w
    else:
        slope = remap(w, v.shape, lambda at: (at[1],)) if w.rank == 1 else broadcast(w, v.shape)
    return op("where", op("gt", v, 0), v, v * slope)


def _glu(b: Build, x: Elements, dim: int = -1) -> Elements:
    v = computed(x)
    d = dim % v.rank
    half = v.shape[d] // 2
    second = remap(v, b.shape, lambda at: (*at[:d], at[d] + half, *at[d + 1 :]))
    first = remap(v, b.shape, lambda at: at)
    return first * op("sigmoid", second)


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "aten.relu.default": _relu,
        "aten.relu6.default": _relu6,
        "aten.hardtanh.default": _hardtanh,
        "aten.leaky_relu.default": _leaky_relu,
        "aten.rrelu.default": _rrelu,
        "aten.elu.default": _elu,
        "aten.selu.default": _selu,
        "aten.celu.default": _celu,
        "aten.gelu.default": _gelu,
        "aten.silu.default": _silu,
        "aten.mish.default": _mish,
        "aten.softplus.default": _softplus,
        "aten.hardsigmoid.default": _hardsigmoid,
        "aten.hardswish.default": _hardswish,
        "aten.softsign.default": _softsign,
        "aten.softshrink.default": _softshrink,
        "aten.hardshrink.default": _hardshrink,
        "aten.threshold.default": _threshold,
        "aten.log_sigmoid.default": _log_sigmoid,
        "aten.log_sigmoid_forward.default": _log_sigmoid,
        "aten.prelu.default": _prelu,
        "aten._prelu_kernel.default": _prelu,
        "aten.glu.default": _glu,
    }
)
"""By overload name."""
