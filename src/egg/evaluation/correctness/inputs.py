"""The inputs of one trial, as its kind asks: drawn, changed, laid out, resized."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from egg.evaluation.calls import Call
from egg.evaluation.correctness.draws import any_distribution, redrawn_inputs
from egg.evaluation.correctness.dtypes import name_of
from egg.evaluation.correctness.layouts import laid_out
from egg.evaluation.correctness.linear import why_not_exact
from egg.evaluation.correctness.oracle import Leaves, Oracle
from egg.evaluation.correctness.shapes import TooLarge, reshaped
from egg.evaluation.correctness.special import with_specials
from egg.evaluation.correctness.trials import DISTRIBUTIONS, SIGNED, SPECIALS, TrialKind
from egg.evaluation.tensors import map_tensors, walk
from egg.schema.task import Task
from egg.tasks.load import draw_inputs

State = dict[str, torch.Tensor]
Accepts = Callable[[Call, State, int], bool]
"""Whether the reference runs on these inputs, weights and seed."""


class Inapplicable(Exception):
    """A kind of trial makes no sense for the task; the message says why."""


class NoMemory(Inapplicable):
    """The memory that is left is too small for a trial."""

    def __init__(self) -> None:
        super().__init__("there is not enough memory left for it")


class Inputs:
    """Draws the inputs of a task's workloads."""

    def __init__(self, task: Task, accepts: Accepts, oracle: Oracle, device: str) -> None:
        self._device = device
        self._task = task
        self._workloads = {w.name: w for w in task.workloads}
        self._accepts = accepts
        self._oracle = oracle

    def draw(self, workload: str, seed: int, trial: TrialKind, state: State, shrink: float = 1.0) -> Call:
        """Returns the inputs of a trial. Raises Inapplicable."""
        call = self._own(workload, seed)
        if trial.shape != "own":
            call = self._resized(call, workload, seed, trial, state)
        values = any_distribution(seed) if trial.values == "any" else trial.values
        if values in SPECIALS:
            call = _must(with_specials(call, values, seed), "no input can hold such values")
        elif values in (*DISTRIBUTIONS, SIGNED, "integers"):
            call = _must(redrawn_inputs(call, values, seed, shrink), "every input has to stay what it is")
        if values == "integers":
            self._must_be_exact(call, state, seed)
        if trial.layout != "own":
            call = _must(laid_out(call, trial.layout), "no input has another such layout")
        return call

    def _own(self, workload: str, seed: int) -> Call:
        args, kwargs = draw_inputs(self._task, self._workloads[workload], seed, self._device)
        return args, kwargs

    def _resized(self, call: Call, workload: str, seed: int, trial: TrialKind, state: State) -> Call:
        second = self._own(workload, (seed + 1) % 2**32)
        try:
            made = reshaped(call, second, trial.shape, lambda c: self._accepts(c, state, seed))
        except TooLarge as reason:
            raise Inapplicable(str(reason)) from reason
        return _must(made, "the reference takes no other size of this kind")

    def _must_be_exact(self, call: Call, state: State, seed: int) -> None:
        def values(given: Call, weights: State) -> Sequence[torch.Tensor] | None:
            found = self._oracle.values(given, weights, seed)
            return None if found is None else _outputs(found)

        above = {k: v.abs() if v.is_floating_point() else v for k, v in state.items()}
        as_positive = lambda c: map_tensors(c, lambda t: t.abs() if t.is_floating_point() else t)  # noqa: E731
        narrowest = min(
            (name_of(v.dtype) for v in _tensors(call) if v.is_floating_point()),
            key=lambda name: torch.finfo(getattr(torch, name)).bits,
        )
        found = values(call, state) or ()
        reason = why_not_exact(
            lambda c: values(c, state), call, lambda c: values(as_positive(c), above), [narrowest] * len(found)
        )
        if reason:
            raise Inapplicable(reason)


def _must(call: Call | None, reason: str) -> Call:
    if call is None:
        raise Inapplicable(reason)
    return call


def _outputs(leaves: Leaves) -> list[torch.Tensor]:
    return [
        v for k, v in leaves.items() if k.startswith("output") and isinstance(v, torch.Tensor) and v.is_floating_point()
    ]


def _tensors(call: Call) -> list[torch.Tensor]:
    return [v for _, v in walk(list(call), "call") if isinstance(v, torch.Tensor)]
