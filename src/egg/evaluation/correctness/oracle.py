"""The float64 oracle: the reference again, on the same inputs and weights, in float64."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from math import isfinite
from typing import Any

import torch
from torch import nn
from torch.linalg import vector_norm
from torch.utils._python_dispatch import TorchDispatchMode

from egg.evaluation.calls import Call, Projection, call_projected
from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.arithmetic import NarrowingWatch, Shake
from egg.evaluation.correctness.compare import Expected
from egg.evaluation.correctness.discrete import Choice, ChoiceWatch, choice_of
from egg.evaluation.correctness.dtypes import name_of, real_of
from egg.evaluation.correctness.sizes import largest, rms
from egg.evaluation.memory import ran_out
from egg.evaluation.tensors import map_tensors, own_copy, walk

Leaves = dict[str, Any]


class NoRoom(MemoryError):
    """The memory of the device is too small for a run in float64."""


class Oracle:
    """Holds the reference in float64, and in float32 where the task itself is in float64."""

    def __init__(
        self, build: Callable[[], nn.Module], device: str = "cpu", build_at_home: Callable[[], nn.Module] | None = None
    ) -> None:
        """`build` makes the reference in float64 on the device, `build_at_home` on the host where that may help out."""
        self._builders = {device: build, **({"cpu": build_at_home} if build_at_home else {})}
        self._device = device
        self._modules: dict[tuple[torch.dtype, str], nn.Module] = {}

    def judge(
        self,
        call: Call,
        state: dict[str, torch.Tensor],
        seed: int,
        leaves: Leaves,
        choices: Sequence[Choice] = (),
        projection: Projection | None = None,
    ) -> dict[str, Expected]:
        """Returns, for each leaf that the reference gave, the oracle's value and the reference's own error.

        Where all that enters is float64, a result is its own oracle. Its error is that of a float32 twin, on the same
        inputs rounded to float32, scaled by the ratio of the two units. A float64 result of narrower inputs is held
        against the oracle, like any other, and may err as much as such a twin. `choices` are those that the reference
        made on the way; with a `projection`, the leaves hold its gradients.
        """
        floating = {
            k: v for k, v in leaves.items() if isinstance(v, torch.Tensor) and real_of(v.dtype).is_floating_point
        }
        wide = {k for k, v in floating.items() if real_of(v.dtype) is torch.float64}
        tensors = {k for k, v in leaves.items() if isinstance(v, torch.Tensor)}
        given = [v for _, v in walk([call, state], "given") if isinstance(v, torch.Tensor)]
        narrowest = _narrowest(given)
        gold = twin = rounded = None
        narrowing, choosing = NarrowingWatch(), ChoiceWatch()
        if tensors - wide or narrowest is not torch.float64:
            watch = choosing if choices else None
            gold = self._judging(call, state, seed, torch.float64, watch, projection, leaves)
        if wide:
            round_down = lambda t: t.float() if t.is_floating_point() else t  # noqa: E731
            low_call, low_state = map_tensors(call, round_down), map_tensors(state, round_down)
            twin = self._judging(low_call, low_state, seed, torch.float32, None, projection, leaves)
            rounded = self._judging(low_call, low_state, seed, torch.float64, narrowing, projection, leaves)
        reach = reach_of(given)
        expected: dict[str, Expected] = {}
        for name, value in leaves.items():
            if name not in floating:
                expected[name] = _discrete(value, (gold or {}).get(name), choices, choosing.choices)
            elif name not in wide:
                expected[name] = _from_gold(value, (gold or {}).get(name), value.dtype, reach)
            else:
                found = (twin or {}).get(name), (rounded or {}).get(name)
                expected[name] = _from_twin(value, *found, reach, rounded is not None and narrowing.narrows)
                if narrowest is not torch.float64:
                    wide_gold = _from_gold(value, (gold or {}).get(name), narrowest, reach)
                    expected[name] = _no_less_error(wide_gold, expected[name])
        return expected

    def shaken(
        self,
        call: Call,
        state: dict[str, torch.Tensor],
        seed: int,
        unit: float,
        projection: Projection | None = None,
    ) -> Leaves:
        """Returns the leaves of a float64 run in which inputs and operators err at random by up to `unit / 2`."""
        shake = Shake(unit)
        try:
            return self._run(map_tensors(call, shake.moved), state, seed, torch.float64, shake, projection) or {}
        except (NoRoom, torch.OutOfMemoryError):
            return {}

    def values(self, call: Call, state: dict[str, torch.Tensor], seed: int) -> Leaves | None:
        """Returns the leaves of a float64 run; None where the reference can't run in float64, or not in this memory."""
        try:
            return self._run(call, state, seed, torch.float64)
        except NoRoom:
            return None

    def _judging(
        self,
        call: Call,
        state: dict[str, torch.Tensor],
        seed: int,
        dtype: torch.dtype,
        mode: TorchDispatchMode | None,
        projection: Projection | None,
        wanted: Collection[str],
    ) -> Leaves | None:
        """Returns the wanted leaves of a run, on the host where the device's memory is too small for it.

        Raises NoRoom where that is not to be.
        """
        try:
            found = self._run(call, state, seed, dtype, mode, projection)
        except NoRoom:
            if self._device == "cpu" or "cpu" not in self._builders:
                raise
        else:
            return found and {k: v for k, v in found.items() if k in wanted}
        torch.cuda.empty_cache()
        args, weights = map_tensors((call, state), lambda t: t.cpu())
        if isinstance(mode, ChoiceWatch):
            mode.choices.clear()
        found = self._run(args, weights, seed, dtype, mode, projection, "cpu")
        if isinstance(mode, ChoiceWatch):
            mode.choices = [c.on(self._device) for c in mode.choices]
        return found and {k: map_tensors(v, lambda t: t.to(self._device)) for k, v in found.items() if k in wanted}

    def _run(
        self,
        call: Call,
        state: dict[str, torch.Tensor],
        seed: int,
        dtype: torch.dtype,
        mode: TorchDispatchMode | None = None,
        projection: Projection | None = None,
        device: str = "",
    ) -> Leaves | None:
        """Returns the leaves of a run in `dtype`; None where the reference can't run in it.

        Raises NoRoom where memory is too small for it.
        """

        def cast(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(dtype) if tensor.is_floating_point() and tensor.dtype != dtype else own_copy(tensor)

        try:
            module = self._module(dtype, device or self._device)
            module.load_state_dict(state)
            args, kwargs = map_tensors(call, cast)
            with mode or nullcontext():
                output, gradients = call_projected(seed, module, (args, kwargs), projection)
        except Exception as error:  # a dtype written into forward, or an operator without a float64 form
            if ran_out(error):
                place = "host" if (device or self._device) == "cpu" else "device"
                raise NoRoom(f"the float64 oracle has no room on the {place}: {_first_line(error)}") from error
            return None
        return {**leaves_of(output, (args, kwargs), module), **gradients}

    def _module(self, dtype: torch.dtype, device: str) -> nn.Module:
        if (dtype, device) not in self._modules:
            module = self._builders[device]()
            self._modules[dtype, device] = module.float() if dtype is torch.float32 else module
        return self._modules[dtype, device]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def leaves_of(output: Any, call: Call, module: nn.Module) -> Leaves:
    """Returns everything that a call gave and left behind, by name."""
    state = {f"buffer {k}": v.detach().clone() for k, v in module.state_dict().items()}
    return {**dict(walk(output, "output")), **input_leaves(call), **state}


def input_leaves(call: Call) -> Leaves:
    """Returns the leaves of the arguments by name, such as `input args[0]`."""
    return {f"input {k}": v for k, v in (*walk(call[0], "args"), *walk(call[1], "kwargs"))}


def _discrete(value: Any, gold: Any, ours: Sequence[Choice], golds: Sequence[Choice]) -> Expected:
    """Returns what is right for a leaf that is not floating: exactly that, the oracle's, or an equally good choice."""
    whole = isinstance(value, torch.Tensor) and not value.dtype.is_complex and value.dtype is not torch.bool
    return Expected(value, gold, choice=choice_of(value, ours, golds) if whole else None)


def _from_gold(value: torch.Tensor, gold: Any, computed: torch.dtype, reach: float) -> Expected:
    """Returns what is right where the oracle is `gold`; `computed` is the narrowest dtype on the way to the value.

    Where a cast within the reference leaves the oracle in float32 too, both round alike, and the error says nothing.
    """
    wanted = torch.promote_types(value.dtype, torch.float64)
    if isinstance(gold, torch.Tensor) and gold.shape == value.shape:
        rounded = gold.dtype is value.dtype is torch.float32
        gold = gold.to(wanted)
        error = torch.sub(value, gold)  # widened element by element, without a copy
        sizes = _sizes(error, gold)
        if _plausible(*sizes, computed, reach):
            error, note = _sane(error, *sizes, computed, reach)
            return Expected(value, gold, error, factor=tolerance.NO_ORACLE_FACTOR if rounded else 1.0, note=note)
    own = value.to(wanted)
    return Expected(value, own, torch.zeros_like(own), factor=tolerance.NO_ORACLE_FACTOR, oracle=False)


def _from_twin(value: torch.Tensor, twin: Any, rounded: Any, reach: float, narrows: bool) -> Expected:
    """Returns what is right where the float64 `value` is its own oracle.

    A float32 twin that adds up in float64 errs less than its scaled error is in float64, so the floor is wide; where
    a cast `narrows` what the reference computes, it is that of float32.
    """
    error = torch.zeros_like(value)
    if isinstance(twin, torch.Tensor) and isinstance(rounded, torch.Tensor) and twin.shape == value.shape:
        found = twin.to(value.dtype) - rounded.to(value.dtype)
        if _plausible(*_sizes(found, rounded), torch.float32, reach):
            error = found * tolerance.FLOAT64_FROM_FLOAT32
    unit = torch.finfo(value.dtype).eps
    factor = tolerance.NO_ORACLE_FACTOR * torch.finfo(torch.float32).eps / unit if narrows else tolerance.FLOAT64_FACTOR
    return Expected(value, value, error, factor=factor, error_max=factor * unit * largest(value))


def _no_less_error(expected: Expected, twin: Expected) -> Expected:
    """Returns `expected` with at least the error of a twin; one that errs nowhere computes in float64 itself."""
    assert expected.gold is not None
    assert twin.error is not None
    size, most, share = rms(twin.error), largest(twin.error), 1.0
    if most == 0:
        size, most = rms(expected.gold), largest(expected.gold)
        share = tolerance.NO_ORACLE_FACTOR * torch.finfo(real_of(expected.gold.dtype)).eps
    return replace(expected, error_rms=share * size, error_max=share * most, factor=twin.factor)


def _narrowest(tensors: Sequence[torch.Tensor]) -> torch.dtype:
    """Returns the floating dtype with the largest unit among the tensors; float64 where none is floating."""
    dtypes = {real_of(t.dtype) for t in tensors if real_of(t.dtype).is_floating_point} or {torch.float64}
    return max(dtypes, key=lambda dtype: torch.finfo(dtype).eps)


def _plausible(size: float, scale: float, dtype: torch.dtype, reach: float) -> bool:
    """Returns whether the oracle computed the same thing; a random mask drawn otherwise in float64 would not.

    `size` is the rms of the error, `scale` that of the oracle. Where a result cancels to nearly nothing, its error is
    held against the largest input instead.
    """
    return size <= _believed(tolerance.REFERENCE_ERROR_CAP, scale, dtype, reach)


def _sane(error: torch.Tensor, size: float, scale: float, dtype: torch.dtype, reach: float) -> tuple[torch.Tensor, str]:
    """Returns the error of the reference, cut to what a sane one makes, and what there is to say about it."""
    most = _believed(tolerance.REFERENCE_ERROR_SANE, scale, dtype, reach)
    if size <= most:
        return error, ""
    note = f"the reference itself errs by {size:.2g} at values of {scale:.2g} (rms); counted as {most:.2g}"
    return error * (most / size), note


def _believed(caps: dict[str, float], scale: float, dtype: torch.dtype, reach: float) -> float:
    real = real_of(dtype)
    cap = caps[name_of(real)]
    return max(cap * scale, tolerance.CANCELLED_EPS * torch.finfo(real).eps * reach)


def _sizes(error: torch.Tensor, gold: torch.Tensor) -> tuple[float, float]:
    """Returns the rms of error and oracle where both are finite; zeros where nothing is."""
    count = error.numel()
    size, scale = vector_norm(error).item(), vector_norm(gold).item()
    if not isfinite(size + scale):
        finite = error.isfinite() & gold.isfinite()
        size, scale = (vector_norm(torch.where(finite, t, 0.0)).item() for t in (error, gold))
        count = int(finite.sum())
    return (size / count**0.5, scale / count**0.5) if count else (0.0, 0.0)


def reach_of(values: Sequence[torch.Tensor]) -> float:
    """Returns the largest finite magnitude among the floating tensors."""
    return max((largest(v) for v in values if v.is_floating_point() and v.numel() > 0), default=0.0)
