"""Holds trivial answers against the check that candidates have to pass. Runs in a reference worker."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch

from egg.errors import TaskError
from egg.evaluation.audit.answers import Answer, Leaves, Material, answers
from egg.evaluation.calls import one_thread
from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.compare import Expected, Measured, Mismatch, measure
from egg.evaluation.correctness.inputs import Inapplicable
from egg.evaluation.correctness.oracle import input_leaves, leaves_of
from egg.evaluation.correctness.reference import Draw, Reference, State, run
from egg.evaluation.correctness.sizes import finite_only, largest, rms

_SMALL_ELEMENTS = 1 << 18
"""Below it, waking threads costs more than they save."""
_SAMPLE = 1 << 14
"""Elements of a large leaf that are looked at first."""


class Gate:
    """The trivial answers of one task, draw by draw."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self._samples: dict[str, Expected] = {}

    def hold(
        self, workload: str, kind: str, state: bool, seeds: Sequence[int], only: Collection[str] | None
    ) -> list[dict[str, Any]] | None:
        """Returns one probe an answer, those of `only` where that is given; None where the draws do not apply.

        With `state`, weights are drawn anew as well. Raises TaskError where the reference fails on its own draws.
        """
        if not state:
            self._reference.rewind()
        elif kind == "own" and not self._reference.has_weights:
            return None  # no draw that was not made before
        left = iter(seeds)
        draw = self._drawn(workload, left, kind, state)
        if draw is None:
            return None
        try:
            wanted = self._judged(self._reference.expect(draw).leaves)
        except (TaskError, Inapplicable):
            if kind == "own" and not state:
                raise
            return None  # these draws are outside the task's domain
        if not wanted:
            return []
        self._samples = {k: part for k, e in wanted.items() if (part := _sampled(e)) is not None}
        small = sum(e.value.numel() for e in wanted.values()) < _SMALL_ELEMENTS
        with one_thread() if small else nullcontext():
            material = self._material(draw, wanted, left)
            held = (a for a in answers(material) if only is None or a.key in only)
            return [self._probe(draw, wanted, answer) for answer in held]

    def _drawn(self, workload: str, seeds: Iterator[int], kind: str, state: bool) -> Draw | None:
        """Returns a draw under the first seed for which the kind applies; None where it does for none of two."""
        for _, seed in zip(range(2), seeds, strict=False):
            if (draw := self._reference.draw(workload, seed, kind, state)) is not None:
                return draw
        return None

    def _judged(self, leaves: dict[str, Expected]) -> dict[str, Expected]:
        """Returns what is returned, or what is changed in place where nothing is."""
        tensors = {k: e for k, e in leaves.items() if isinstance(e.value, torch.Tensor) and e.value.numel() > 0}
        return {k: e for k, e in tensors.items() if k.startswith("output")} or tensors

    def _material(self, draw: Draw, wanted: dict[str, Expected], seeds: Iterator[int]) -> Material:
        reference = self._reference
        again = self._drawn(draw.workload, seeds, draw.kind, state=False)
        earlier = self._given(again or draw, draw.state, wanted) if again else {}
        other = None
        if self._reference.has_weights:
            other = self._given(draw, reference.other_state(draw.state, next(seeds)), wanted)
        right: Leaves = {k: e.value for k, e in wanted.items()}
        inputs = {k.removeprefix("input "): v for k, v in input_leaves(draw.call).items()}
        return Material(right, {k: v for k, v in inputs.items() if isinstance(v, torch.Tensor)}, earlier, other)

    def _given(self, draw: Draw, state: State, wanted: dict[str, Expected]) -> Leaves:
        """Returns the judged leaves of a plain run of the reference."""
        output, call = run(self._reference.module, draw.call, state, draw.seed)
        found = leaves_of(output, call, self._reference.module)
        return {k: found[k] for k in wanted if isinstance(found.get(k), torch.Tensor)}

    def _probe(self, draw: Draw, wanted: dict[str, Expected], answer: Answer) -> dict[str, Any]:
        excess, detail = self._excess(draw, wanted, answer.leaves)
        return {
            "name": answer.name,
            "variant": answer.variant,
            "key": answer.key,
            "caught": excess is None or excess >= tolerance.TRIVIAL_MARGIN,
            "excess": excess,
            "same": all(k in answer.leaves and _equal(answer.leaves[k], e.value) for k, e in wanted.items()),
            "counts": not answer.repeats,
            "detail": detail,
        }

    def _excess(self, draw: Draw, wanted: dict[str, Expected], leaves: Leaves) -> tuple[float | None, str]:
        """Returns the largest excess over all leaves with its witness; None for what needs no arithmetic to fail.

        A sample that shows more than the margin is enough, and is then what is returned.
        """
        for name, expected in wanted.items():
            given = leaves.get(name)
            if given is None or given.shape != expected.value.shape or given.dtype != expected.value.dtype:
                return None, f"{name} has another shape or dtype"
        for name, part in self._samples.items():
            found = measure(name, _sample(leaves[name]), part)
            if not isinstance(found, Measured):
                return None, found.message if found else ""
            if found.ratio_max > tolerance.TRIVIAL_MARGIN * found.limit_max:
                return found.ratio_max / found.limit_max, f"in a sample of {found.elements} elements of {name}"
        return self._excess_in_whole(draw, wanted, leaves)

    def _excess_in_whole(self, draw: Draw, wanted: dict[str, Expected], leaves: Leaves) -> tuple[float | None, str]:
        largest, detail = 0.0, ""
        for name, expected in wanted.items():
            found = measure(name, leaves[name], expected)
            if isinstance(found, Measured) and tolerance.asks_again(found.excess, found.elements, draw.trial.own):
                found = measure(name, leaves[name], self._reference.reconsidered(draw, name, expected)) or found
            if isinstance(found, Mismatch):
                return None, found.message
            if found is not None and found.excess >= largest:
                largest, detail = found.excess, f"{name}: {found.worst}" if found.worst else name
        return largest, detail


def _sampled(expected: Expected) -> Expected | None:
    """Returns a sample of a large floating leaf, judged by the reference's error over the whole; else None."""
    if expected.gold is None or expected.error is None or expected.value.numel() < 2 * _SAMPLE:
        return None
    if finite_only(expected.error)[1] == 0:
        return None
    return replace(
        expected,
        value=_sample(expected.value),
        gold=_sample(expected.gold),
        error=_sample(expected.error),
        error_rms=max(expected.error_rms, rms(expected.error)),
        error_max=max(expected.error_max, largest(expected.error)),
    )


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Returns about `_SAMPLE` elements, spread evenly and the same for tensors of one shape."""
    return tensor.reshape(-1)[
        :: tensor.numel() // _SAMPLE | 1
    ]  # odd, so that rows of 2^n elements are not all hit at one column


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(torch.equal(a, b))
