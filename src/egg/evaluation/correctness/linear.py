"""Whether a task is linear in each of its inputs, so that whole numbers in give whole numbers out in every order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from egg.evaluation.calls import Call
from egg.evaluation.correctness import tolerance
from egg.evaluation.tensors import map_tensors, walk

Change = Callable[[torch.Tensor], torch.Tensor]
Values = Callable[[Call], Sequence[torch.Tensor] | None]
"""The floating outputs of a call in float64, or None where it can't be run so."""


def why_not_exact(values: Values, call: Call, ceiling: Values, dtypes: Sequence[str]) -> str:
    """Returns why sums of this call may round; nothing where they can't.

    `call` holds whole numbers; `ceiling` gives the outputs for the absolute values of inputs and weights, which
    bounds every partial sum; `dtypes` are those of the outputs in the task.
    """
    base = values(call)
    if base is None:
        return "the task does not run in float64"
    if not base or any(not bool((g == g.round()).all()) for g in base):
        return "whole numbers do not give whole numbers"
    for number in range(len(_floating(call))):
        if not _is_linear(values, call, base, number):
            return "the task is not linear in its inputs"
    bounds = ceiling(call) or ()
    largest = [max(b.abs().max().item(), 1.0) if b.numel() else 0.0 for b in bounds]
    if len(largest) != len(dtypes):
        return "sums have no bound"
    if any(most > tolerance.WHOLE_RANGE[dtype] for most, dtype in zip(largest, dtypes, strict=True)):
        return f"sums reach {max(largest):.3g}, too far for whole numbers"
    return ""


def _is_linear(values: Values, call: Call, base: Sequence[torch.Tensor], number: int) -> bool:
    """Returns whether f(x + y) = f(x) + f(y) - f(0) in one input, for two different x and y."""
    turned: Change = lambda t: t.flatten().flip(0).reshape(t.shape)  # noqa: E731
    second = values(_with(call, number, turned))
    if second is None:
        return False
    wanted = [one + other for one, other in zip(base, second, strict=True)]
    del second  # here and below: each of these may be gigabytes
    nothing = values(_with(call, number, torch.zeros_like))
    if nothing is None:
        return False
    wanted = [both - zero for both, zero in zip(wanted, nothing, strict=True)]
    del nothing
    total = values(_with(call, number, lambda t: t + turned(t)))
    return total is not None and all(torch.equal(one, other) for one, other in zip(total, wanted, strict=True))


def _with(call: Call, number: int, change: Change) -> Call:
    count = -1

    def one(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += tensor.is_floating_point()
        return change(tensor) if tensor.is_floating_point() and count == number else tensor

    return map_tensors(call, one)


def _floating(call: Call) -> list[torch.Tensor]:
    return [v for _, v in walk(list(call), "call") if isinstance(v, torch.Tensor) and v.is_floating_point()]
