"""Every scalar function against float64, over floats of all magnitudes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from egg.expert.emit import load_cpp, print_cpp
from egg.expert.index import Axis, axis_index
from egg.expert.ir import Apply, Load
from egg.expert.loops import Array, Compute, Kernel, Stage, Store
from egg.expert.scalar_ops import SCALAR_OPS

UNARY = sorted(n for n, op in SCALAR_OPS.items() if op.arity == 1 and op.domain == "float" and op.result == "same")
EXACT = ("frac", "trunc", "ceil", "floor", "round", "reciprocal", "sqrt")
FLUSHED = ("exp", "sigmoid")
"""Functions that give 0 near and below the smallest normal float."""
COUNT = 1 << 17
CANCELLING = ("normal_cdf",)
"""Functions with a sum that cancels: their error counts in units of the last place below 1."""
WIDE_RANGE = ("sin", "cos", "tan")
"""Exact reduction ends at 2^50."""


def kernel(op: str, dtype: str, count: int) -> Kernel:
    """Returns `y = op(x)`, or `y = op(x, z)`."""
    axis = Axis("i", count)
    at = (axis_index(axis),)
    names = ("x", "z")[: SCALAR_OPS[op].arity]
    body = Apply(op, tuple(Load(n, at, dtype) for n in names), dtype)
    arrays = tuple(Array(n, dtype, (count,), (1,), "input") for n in names)
    stage = Stage((axis,), (Compute("y", dtype, body, None, (Store(f"{op}_{dtype}", at),)),))
    return Kernel(f"{op}_{dtype}", (), (stage,), (*arrays, Array(f"{op}_{dtype}", dtype, (count,), (1,), "output")))


@pytest.fixture(scope="module")
def samples() -> torch.Tensor:
    """Floats of every exponent and sign, subnormals, infinities, NaN, and a dense range around 0."""
    bits = torch.arange(-(2**31), 2**31, 2**32 // (COUNT // 2), dtype=torch.int64) + 12345
    everywhere = bits.to(torch.int32).view(torch.float32)
    special = torch.tensor([0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan, 88.8, -88.8, -103.9, 1e-45])
    around = torch.linspace(-20.0, 20.0, COUNT - len(everywhere) - len(special))
    return torch.cat([special, everywhere, around])


@pytest.fixture(scope="module")
def results(samples: torch.Tensor, tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """The results of all functions, from one compilation."""
    folder: Path = tmp_path_factory.mktemp("functions")
    unit = print_cpp([kernel(op, "float32", COUNT) for op in (*UNARY, "pow")])
    module: Any = load_cpp("functions", unit.complete_source, folder)
    (entry,) = unit.functions
    inputs = {"x": samples, "z": samples.roll(1234).remainder(9).sub(4)}
    inputs["z"][::3] = inputs["z"][::3].round()
    outputs = {n: torch.empty(COUNT) for n in entry.outputs}
    getattr(module, entry.name)(*({**inputs, **outputs}[a.name] for a in entry.arguments))
    return {n.removesuffix("_float32"): t for n, t in {**outputs, "z": inputs["z"]}.items()}


def ulps(got: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Returns the error in units of the last place of the exact value, 0 where both are the same special value."""
    rounded = exact.float()
    special = ~rounded.isfinite() | ~got.isfinite()
    same = (got == rounded) | (got.isnan() & rounded.isnan())
    unit = torch.ldexp(torch.ones(()).double(), (exact.abs().clamp_min(2.0**-126).log2().floor() - 23))
    error = (got.double() - exact).abs() / unit
    edge = special & ~same & (exact.abs() > 3.4028e38)
    return torch.where(same | edge, torch.where(special, 0.0, error), torch.where(special, torch.inf, error))


def reference(op: str) -> Callable[..., torch.Tensor]:
    return eval(f"lambda x, z=None: {SCALAR_OPS[op].torch.format('x', 'z')}")


@pytest.mark.parametrize("op", UNARY)
def test_unary_error_is_within_two_ulps(op: str, samples: torch.Tensor, results: dict[str, torch.Tensor]) -> None:
    exact = reference(op)(samples.double())
    error = ulps(results[op], exact)
    if op in WIDE_RANGE:
        error = error[samples.abs() < 2.0**50]
    if op in CANCELLING:
        error = torch.where(samples.isnan(), results[op].isfinite().double(), (results[op] - exact).abs() * 2.0**24)
    if op in FLUSHED:
        error = torch.where((exact.abs() < 1.7e-38) & (results[op] == 0), 0.0, error)
    worst = int(error.argmax())
    limit = 0.51 if op in EXACT else 3 if op in CANCELLING else 2.2
    assert error[worst] <= limit, f"{op}({samples[worst]:.9g}): {error[worst]:.2f} ulp, got {results[op][worst]:.9g}"


def test_pow_error_is_within_two_ulps(samples: torch.Tensor, results: dict[str, torch.Tensor]) -> None:
    exact = torch.pow(samples.double(), results["z"].double())
    error = ulps(results["pow"], exact)
    worst = int(error.argmax())
    assert error[worst] <= 2, f"pow({samples[worst]}, {results['z'][worst]}): {error[worst]}, {results['pow'][worst]}"
