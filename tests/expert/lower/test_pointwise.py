"""Pointwise operators, promotion, activations, creation and gathers against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.expert.lower.checks import check
from torch import nn
from torch.nn import functional as F

X = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0)) * 2
Y = torch.randn(4, 1, generator=torch.Generator().manual_seed(1))
Case = Callable[..., Any]

UNARY = (
    "exp", "exp2", "expm1", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "sigmoid", "erf", "erfc",
    "floor", "ceil", "round", "trunc", "frac", "sign", "abs", "neg", "square", "reciprocal", "isnan", "isinf",
    "isfinite", "signbit", "relu", "logical_not", "nan_to_num", "positive",
)  # fmt: skip
POSITIVE = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt")
UNIT = ("asin", "acos", "atanh", "logit")


def floating_cases() -> dict[str, Case]:
    return {
        **{name: lambda x, y, name=name: getattr(torch, name)(x) for name in UNARY},
        **{name: lambda x, y, name=name: getattr(torch, name)(x.abs() + 0.5) for name in POSITIVE},
        **{name: lambda x, y, name=name: getattr(torch, name)(x.sigmoid() * 0.9 + 0.05) for name in UNIT},
        "acosh": lambda x, y: torch.acosh(x.abs() + 1.5),
        "add": lambda x, y: x + y,
        "add alpha": lambda x, y: torch.add(x, y, alpha=3) + torch.sub(x, y, alpha=0.5) + torch.rsub(x, y, alpha=2),
        "numbers": lambda x, y: 2 * x + 1 - (3 - y) / 4 + 1 / (y * y + 1),
        "div": lambda x, y: x / y,
        "rounded div": lambda x, y: torch.div(x, y, rounding_mode="floor") + torch.div(x, y, rounding_mode="trunc"),
        "remainder": lambda x, y: torch.remainder(x, y) + torch.fmod(x, y) + x % 0.7,
        "floor divide": lambda x, y: x // 0.75,
        "pow": lambda x, y: x**2 + x**3 + x.abs() ** 0.5 + x.abs() ** 1.7 + x**0 + (y * y + 1) ** -1 + 2**y,
        "pow tensors": lambda x, y: (x.abs() + 0.1) ** y,
        "extremes": lambda x, y: torch.maximum(x, y) + torch.minimum(x, y) + torch.fmax(x, y) + torch.fmin(x, y),
        "clamp": lambda x, y: x.clamp(-1, 0.5) + x.clamp(min=0) + x.clamp(max=y) + torch.clip(x, y - 1, y + 1),
        "comparisons": lambda x, y: [x < y, x <= 0.5, x > y, x >= y, x == y, x != 1],
        "logic": lambda x, y: [(x > 0) & (y > 0), (x > 0) | (y > 0), (x > 0) ^ (y > 0), ~(x > 0)],
        "logical": lambda x, y: torch.logical_and(x, y) | torch.logical_xor(x, y),
        "where": lambda x, y: torch.where(x > 0, x, y) + torch.where(y > 0, x, 1.0) + torch.where(x > y, 2.0, -1.0),
        "masked_fill": lambda x, y: x.masked_fill(y > 0, -3.0),
        "lerp": lambda x, y: torch.lerp(x, y, 0.3) + torch.lerp(x, x * 2, y.expand_as(x).contiguous()),
        "addcmul": lambda x, y: torch.addcmul(x, y, y, value=0.5) + torch.addcdiv(x, y, y * y + 1, value=2),
        "atan2": lambda x, y: torch.atan2(x, y) + torch.hypot(x, y) + torch.copysign(x, y),
        "logaddexp": lambda x, y: torch.logaddexp(x, y) + torch.xlogy(x.abs(), y * y + 1),
        "zero-dim": lambda x, y: x * y.sum() + y[0, 0],
    }  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floating(dtype: str) -> None:
    kind = getattr(torch, dtype)
    check(floating_cases(), X.to(kind), Y.to(kind), ulps=8)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half(dtype: str) -> None:
    """PyTorch rounds after every operator and the program only at the end, so chains may differ by a few roundings."""
    kind = getattr(torch, dtype)
    unsteady = ("tan", "rounded div", "remainder", "floor divide", "div", "frac", "atanh", "logit", "asin", "acos")
    steady = {name: case for name, case in floating_cases().items() if name not in unsteady}
    check(steady, X.to(kind), Y.to(kind), ulps=3)


ACTIVATIONS: dict[str, Case] = {
    "relu6": F.relu6,
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 1.5),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "rrelu": lambda x: F.rrelu(x, training=False),
    "elu": lambda x: F.elu(x, 0.7),
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 0.6),
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "softplus": F.softplus,
    "softplus steep": lambda x: F.softplus(x, beta=2.5, threshold=3),
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "softsign": F.softsign,
    "softshrink": lambda x: F.softshrink(x, 0.4),
    "hardshrink": lambda x: F.hardshrink(x, 0.4),
    "tanhshrink": F.tanhshrink,
    "threshold": lambda x: F.threshold(x, 0.3, -2.0),
    "logsigmoid": F.logsigmoid,
    "prelu": lambda x: F.prelu(x, torch.full((1,), 0.3)) + F.prelu(x, torch.arange(4) * 0.1),
    "glu": lambda x: F.glu(x, 1) if x.dim() > 1 else x,
    "dropout": lambda x: F.dropout(x, 0.5, training=False) + F.dropout(x, 0.0, training=True),
}


def test_activations() -> None:
    check(ACTIVATIONS, X * 4, ulps=4)


def test_activations_at_the_edges() -> None:
    edges = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 100.0, -100.0, 20.0, 6.0, -3.0])
    cases = {name: case for name, case in ACTIVATIONS.items() if name not in ("prelu", "glu", "gelu tanh", "gelu")}
    check(cases, edges, ulps=4)


def test_promotion() -> None:
    functions: dict[str, Case] = {
        "int + float": lambda i, j, f, h, m, d: i + f,
        "int / int": lambda i, j, f, h, m, d: i / j,
        "int // int": lambda i, j, f, h, m, d: [
            i // j, torch.div(i, j, rounding_mode="trunc"), i % j, torch.fmod(i, j)
        ],
        "int + 1.5": lambda i, j, f, h, m, d: i + 1.5,
        "float of int": lambda i, j, f, h, m, d: [i.exp(), torch.sqrt(i.abs()), i.sigmoid(), m.sin()],
        "half + float": lambda i, j, f, h, m, d: h + f,
        "half + 0-dim double": lambda i, j, f, h, m, d: h * d[0],
        "int + 0-dim double": lambda i, j, f, h, m, d: i * d[0],
        "float + double": lambda i, j, f, h, m, d: f[..., 0] + d[:3, None],
        "comparisons": lambda i, j, f, h, m, d: [i < f, i == j, i > 0.5, m == i, h > 0.1, h < d[0], i <= m],
        "bool": lambda i, j, f, h, m, d: [m + m, m * m, m + 1, m * 0.5, m & True, m ^ m, m.logical_not()],
        "bits": lambda i, j, f, h, m, d: [i & j, i | 3, i ^ j, ~i, i << 2, i >> 1],
        "small ints": lambda i, j, f, h, m, d: i.to(torch.int8) + i.to(torch.int32),
        "casts": lambda i, j, f, h, m, d: [
            f.to(torch.int64), i.to(torch.float32), f.half(), m.float(), f.bool(), f.bfloat16().float(), h.double(),
            i.to(torch.int32), f.to(torch.int32).to(torch.int64),
        ],
        "round ints": lambda i, j, f, h, m, d: [i.floor(), i.abs(), i.sign(), i.square(), i.neg(), i.clamp(-1, 2)],
        "where": lambda i, j, f, h, m, d: [torch.where(m, i, f), torch.where(m, 1, i), torch.where(m, h, 2.5)],
        "int pow": lambda i, j, f, h, m, d: [i**2, i**3, j.abs() ** 4, i.abs() ** j.abs()],
        "type_as": lambda i, j, f, h, m, d: i.type_as(f),
        "masked": lambda i, j, f, h, m, d: [i.masked_fill(m, 7), h.masked_fill(m, -1e4)],
    }  # fmt: skip
    i = (X * 3).to(torch.int64)
    j = (Y * 4).to(torch.int64) + 5
    check(functions, i, j, X, X.bfloat16(), X > 0, Y.reshape(-1).double(), ulps=8)


def test_creation() -> None:
    functions: dict[str, Case] = {
        "zeros": lambda x: torch.zeros_like(x) + torch.ones(5) + x.new_zeros(5) + x.new_ones(1) + x.new_full((1,), 3.0),
        "full": lambda x: torch.full((2, 3), 7) + torch.full_like(x[0, 0, :3], 2.5),
        "arange": lambda x: [torch.arange(5), torch.arange(2, 11, 3), torch.arange(0.5, 3, 0.5), torch.arange(4.0)],
        "linspace": lambda x: torch.linspace(-1, 2, 7),
        "eye": lambda x: [torch.eye(3), torch.eye(2, 4)],
        "mask": lambda x: x[0, :, :4].masked_fill(torch.ones(4, 4, dtype=torch.bool).tril().logical_not(), -1.0),
        "causal": lambda x: torch.arange(4)[:, None] >= torch.arange(4)[None, :],
        "scalar": lambda x: x + torch.scalar_tensor(2.0),
    }
    check(functions, X)


def test_gathers() -> None:
    functions: dict[str, Case] = {
        "embedding": lambda x, i: F.embedding(i, x[0]),
        "gather": lambda x, i: x[0].gather(0, i[:, :3]),
        "index_select": lambda x, i: x.index_select(1, i[0]),
        "index": lambda x, i: [x[:, i], x[:, :, i[0]], x[i[0, :2], i[1, :2]], x[i[0] - 3, :, i[1] - 4]],
        "index shifted": lambda x, i: x[:, (i + 1) % 4],
        "index range": lambda x, i: x[:, torch.arange(3)],
        "one_hot": lambda x, i: F.one_hot(i, 6),
        "take_along_dim": lambda x, i: torch.take_along_dim(x[0], i[:, :1], 1),
    }
    i = torch.randint(0, 4, (4, 5), generator=torch.Generator().manual_seed(5)) % 3
    check(functions, X, i)


class Attributes(nn.Module):
    """A module with a constant, a buffer that changes and a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        self.steps += 1
        return {"scaled": x * self.scale * torch.tensor(0.5), "both": [x, x + self.steps]}


def test_state_constants_and_returned_inputs() -> None:
    program = check(Attributes(), X)
    assert [m.target for m in program.mutations]


def test_unknown_operators_stay_whole_with_a_reason() -> None:
    check(lambda x: x.sort(-1), X, library=("aten.sort.default",))
    check(lambda x: F.relu(x) @ x.transpose(1, 2), X, library=("aten.matmul.default",))
