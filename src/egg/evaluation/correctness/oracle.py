"""The float64 oracle: the reference again, on the same inputs and weights, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from egg.evaluation.calls import Call, call_seeded
from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.arithmetic import NarrowingWatch, Shake
from egg.evaluation.correctness.compare import Expected
from egg.evaluation.tensors import map_tensors, own_copy, walk

Leaves = dict[str, Any]


class Oracle:
    """Holds the reference in float64, and in float32 where the task itself is in float64."""

    def __init__(self, build: Callable[[], nn.Module]) -> None:
        self._build = build
        self._modules: dict[torch.dtype, nn.Module] = {}

    def judge(self, call: Call, state: dict[str, torch.Tensor], seed: int, leaves: Leaves) -> dict[str, Expected]:
        """Returns, for each leaf that the reference gave, the oracle's value and the reference's own error.

        Where all that enters is float64, a result is its own oracle. Its error is that of a float32 twin, on the same
        inputs rounded to float32, scaled by the ratio of the two units. A float64 result of narrower inputs is held
        against the oracle, like any other, and may err as much as such a twin.
        """
        floating = {k: v for k, v in leaves.items() if isinstance(v, torch.Tensor) and _real(v.dtype).is_floating_point}
        wide = {k for k, v in floating.items() if _real(v.dtype) is torch.float64}
        tensors = {k for k, v in leaves.items() if isinstance(v, torch.Tensor)}
        given = [v for _, v in walk([call, state], "given") if isinstance(v, torch.Tensor)]
        narrowest = _narrowest(given)
        gold = twin = rounded = None
        watch = NarrowingWatch()
        if tensors - wide or narrowest is not torch.float64:
            gold = self._run(call, state, seed, torch.float64)
        if wide:
            round_down = lambda t: t.float() if t.is_floating_point() else t  # noqa: E731
            low_call, low_state = map_tensors(call, round_down), map_tensors(state, round_down)
            twin = self._run(low_call, low_state, seed, torch.float32)
            rounded = self._run(low_call, low_state, seed, torch.float64, watch)
        reach = _reach(given)
        expected: dict[str, Expected] = {}
        for name, value in leaves.items():
            if name not in floating:
                expected[name] = Expected(value, (gold or {}).get(name))
            elif name not in wide:
                expected[name] = _from_gold(value, (gold or {}).get(name), value.dtype, reach)
            else:
                found = (twin or {}).get(name), (rounded or {}).get(name)
                expected[name] = _from_twin(value, *found, reach, rounded is not None and watch.narrows)
                if narrowest is not torch.float64:
                    wide_gold = _from_gold(value, (gold or {}).get(name), narrowest, reach)
                    expected[name] = _no_less_error(wide_gold, expected[name])
        return expected

    def shaken(self, call: Call, state: dict[str, torch.Tensor], seed: int, dtype: torch.dtype, leaf: str) -> Any:
        """Returns one leaf of a float64 run in which every operator errs at random as it would in `dtype`."""
        found = self._run(call, state, seed, torch.float64, Shake(torch.finfo(dtype).eps))
        return (found or {}).get(leaf)

    def _run(
        self,
        call: Call,
        state: dict[str, torch.Tensor],
        seed: int,
        dtype: torch.dtype,
        mode: TorchDispatchMode | None = None,
    ) -> Leaves | None:
        """Returns the leaves of a run in `dtype`; None where the reference can't run in it."""

        def cast(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(dtype) if tensor.is_floating_point() else own_copy(tensor)

        try:
            module = self._module(dtype)
            module.load_state_dict(state)
            args, kwargs = map_tensors(call, cast)
            with torch.no_grad(), mode or nullcontext():
                output = call_seeded(seed, module, *args, **kwargs)
        except Exception:  # a dtype written into forward, or an operator without a float64 form
            return None
        inputs = {f"input {k}": v for k, v in (*walk(args, "args"), *walk(kwargs, "kwargs"))}
        after = {f"buffer {k}": v.detach().clone() for k, v in module.state_dict().items()}
        return {**dict(walk(output, "output")), **inputs, **after}

    def _module(self, dtype: torch.dtype) -> nn.Module:
        if dtype not in self._modules:
            module = self._build()
            self._modules[dtype] = module.float() if dtype is torch.float32 else module
        return self._modules[dtype]


def _from_gold(value: torch.Tensor, gold: Any, computed: torch.dtype, reach: float) -> Expected:
    """Returns what is right where the oracle is `gold`; `computed` is the narrowest dtype on the way to the value.

    Where a cast within the reference leaves the oracle in float32 too, both round alike, and the error says nothing.
    """
    wanted = torch.promote_types(value.dtype, torch.float64)
    if isinstance(gold, torch.Tensor) and gold.shape == value.shape:
        rounded = gold.dtype is value.dtype is torch.float32
        gold = gold.to(wanted)
        error = value.to(wanted) - gold
        if _plausible(error, gold, computed, reach):
            return Expected(value, gold, error, factor=tolerance.NO_ORACLE_FACTOR if rounded else 1.0)
    own = value.to(wanted)
    return Expected(value, own, torch.zeros_like(own), factor=tolerance.NO_ORACLE_FACTOR)


def _from_twin(value: torch.Tensor, twin: Any, rounded: Any, reach: float, narrows: bool) -> Expected:
    """Returns what is right where the float64 `value` is its own oracle.

    A float32 twin that adds up in float64 errs less than its scaled error is in float64, so the floor is wide; where
    a cast `narrows` what the reference computes, it is that of float32.
    """
    error = torch.zeros_like(value)
    if isinstance(twin, torch.Tensor) and isinstance(rounded, torch.Tensor) and twin.shape == value.shape:
        found = twin.to(value.dtype) - rounded.to(value.dtype)
        if _plausible(found, rounded, torch.float32, reach):
            error = found * tolerance.FLOAT64_FROM_FLOAT32
    finite = value[value.isfinite()].abs()
    largest = finite.max().item() if finite.numel() else 0.0
    unit = torch.finfo(value.dtype).eps
    factor = tolerance.NO_ORACLE_FACTOR * torch.finfo(torch.float32).eps / unit if narrows else tolerance.FLOAT64_FACTOR
    return Expected(value, value, error, factor=factor, error_max=factor * unit * largest)


def _no_less_error(expected: Expected, twin: Expected) -> Expected:
    """Returns `expected` with at least the error of a twin; one that errs nowhere computes in float64 itself."""
    assert expected.gold is not None
    assert twin.error is not None
    error, share = twin.error[twin.error.isfinite()].abs(), 1.0
    if not bool(error.any()):
        error = expected.gold[expected.gold.isfinite()].abs()
        share = tolerance.NO_ORACLE_FACTOR * torch.finfo(error.dtype).eps
    if not error.numel():
        return expected
    rms, largest = error.square().mean().sqrt().item(), error.max().item()
    return replace(expected, error_rms=share * rms, error_max=share * largest, factor=twin.factor)


def _narrowest(tensors: Sequence[torch.Tensor]) -> torch.dtype:
    """Returns the floating dtype with the largest unit among the tensors; float64 where none is floating."""
    dtypes = {_real(t.dtype) for t in tensors if _real(t.dtype).is_floating_point} or {torch.float64}
    return max(dtypes, key=lambda dtype: torch.finfo(dtype).eps)


def _plausible(error: torch.Tensor, gold: torch.Tensor, dtype: torch.dtype, reach: float) -> bool:
    """Returns whether the oracle computed the same thing; a random mask drawn otherwise in float64 would not.

    Where a result cancels to nearly nothing, its error is held against the largest input instead.
    """
    finite = error.isfinite() & gold.isfinite()
    if not bool(finite.any()):
        return True
    size, scale = (t[finite].abs().square().mean().sqrt().item() for t in (error, gold))
    real = _real(dtype)
    cap = tolerance.REFERENCE_ERROR_CAP[str(real).removeprefix("torch.")]
    return size <= max(cap * scale, tolerance.CANCELLED_EPS * torch.finfo(real).eps * reach)


def _reach(values: Sequence[torch.Tensor]) -> float:
    floating = [v for v in values if v.is_floating_point() and v.numel() > 0]
    largest = [v.nan_to_num(0.0, 0.0, 0.0).abs().max().item() for v in floating]
    return max(largest, default=0.0)


def _real(dtype: torch.dtype) -> torch.dtype:
    return dtype.to_real() if dtype.is_complex else dtype
