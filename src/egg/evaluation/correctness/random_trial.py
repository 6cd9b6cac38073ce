"""One trial whose outputs are random: further calls on the same draw under seeds of their own, judged together."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import torch

from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.compare import Expected, Measured, Mismatch
from egg.evaluation.correctness.distribution import (
    CALLS,
    LEAST_ELEMENTS,
    Sample,
    Sampler,
    Samples,
    difference,
    drawn_alike,
)
from egg.evaluation.correctness.dtypes import name_of, real_of
from egg.evaluation.correctness.reference import Draw, Reference
from egg.evaluation.correctness.trials import SPECIALS, TrialKind

Leaves = dict[str, Any]
ByValue = Callable[[str], Measured | Mismatch | None]
"""The outcome of a leaf of the first call, which was judged by value."""


def by_distribution(trial: TrialKind) -> bool:
    """Returns whether random outputs of a trial can be judged by their distribution."""
    return trial.values not in SPECIALS and trial.shape != "empty" and not trial.large


class RandomTrial:
    """Collects the leaves of `CALLS` calls, and those of the reference beside them."""

    def __init__(self, reference: Reference, draw: Draw, expected: dict[str, Expected], by_value: ByValue) -> None:
        self._reference = reference
        self._draw = draw
        self._by_value = by_value
        self._expected = expected
        tensors = {k: e for k, e in expected.items() if isinstance(e.value, torch.Tensor) and e.value.numel() > 0}
        self._samplers = {k: Sampler(e.value.shape) for k, e in tensors.items()}
        self._taken: dict[str, tuple[list[Sample], list[Sample], list[Sample]]] = {k: ([], [], []) for k in tensors}

    def add(self, sent: Leaves, seed: int) -> Mismatch | None:
        """Takes what one call under a seed gave; returns a fault that needs no other call."""
        same = self._reference.leaves(self._draw, seed)
        other = self._reference.leaves(self._draw, secrets.randbits(32))
        for leaf, sampler in self._samplers.items():
            wanted = self._expected[leaf].value
            if leaf not in sent:
                return Mismatch("WRONG_VALUE", f"{leaf} is missing: autograd finds no way from the output to it")
            if sent[leaf].shape != wanted.shape or sent[leaf].dtype != wanted.dtype:
                return Mismatch("WRONG_SHAPE", f"{leaf} has another shape or dtype under another seed")
            for kept, given in zip(self._taken[leaf], (sent[leaf], same[leaf], other[leaf]), strict=True):
                kept.append(sampler.of(given))
        return None

    def outcomes(self) -> dict[str, Measured | Mismatch | None]:
        """Returns the outcome of each leaf after all calls; one that is not random keeps that of its value."""
        return {leaf: self._outcome(leaf) for leaf in self._expected}

    def _outcome(self, leaf: str) -> Measured | Mismatch | None:
        if leaf not in self._taken:
            return self._by_value(leaf)
        mine, same, other = self._taken[leaf]
        samples, sampler = Samples(tuple(mine), tuple(same), tuple(other)), self._samplers[leaf]
        if not samples.random:
            return self._by_value(leaf)
        if sampler.elements < LEAST_ELEMENTS:
            return self._refused(leaf, f"{sampler.elements} random elements are too few to judge their distribution")
        if leaf.startswith("output") and drawn_alike(samples):
            return self._refused(leaf, "it draws as PyTorch does, so its values are judged")
        if message := difference(samples, sampler, *_allowance(self._expected[leaf])):
            return Mismatch("WRONG_VALUE", f"{leaf} is random, and not as the reference's is: {message}")
        worst = f"judged by its distribution over {CALLS} calls"
        return Measured(leaf, 0.0, 0.0, 0.0, 0.0, worst, sampler.elements, by_distribution=True)

    def _refused(self, leaf: str, why: str) -> Measured | Mismatch | None:
        """Returns the outcome by value, with the reason why it counts where it is a fault."""
        outcome = self._by_value(leaf)
        if isinstance(outcome, Measured):
            outcome = outcome if outcome.passed else outcome.miss()
        return Mismatch(outcome.status, f"{outcome.message}; {why}") if isinstance(outcome, Mismatch) else outcome


def _allowance(expected: Expected) -> tuple[float, float]:
    """Returns how far a value may be from one that the reference gives: by its limit and the reference's own error."""
    value = expected.value
    if not (value.is_floating_point() or value.is_complex()):
        return 0.0, 0.0
    if expected.close is not None:
        return expected.close, expected.close
    name = name_of(real_of(value.dtype))
    factor = 1 + (expected.limits or tolerance.limits_for(name, value.numel())).max
    own = 0.0
    if expected.error is not None:
        finite = expected.error[expected.error.isfinite()].abs()
        own = finite.max().item() if finite.numel() else 0.0
    return factor * max(own, expected.error_max), factor * expected.factor * torch.finfo(value.dtype).eps
