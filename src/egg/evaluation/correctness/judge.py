"""The verdict on one trial, and on all trials of a workload together."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from egg.evaluation.calls import one_thread
from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.compare import Expected, Measured, Mismatch, measure, structure_mismatch
from egg.evaluation.correctness.distribution import CALLS
from egg.evaluation.correctness.fingerprint import Fingerprints
from egg.evaluation.correctness.inputs import Inapplicable
from egg.evaluation.correctness.random_trial import RandomTrial, by_distribution
from egg.evaluation.correctness.reference import Draw, Expectation, Reference
from egg.evaluation.correctness.trials import KEPT_CALLS
from egg.evaluation.devices.backend import Backend
from egg.evaluation.tensors import UNREADABLE, Tree, read_tree, walk

_SMALL_ELEMENTS = 1 << 18
"""Below it, waking threads costs more than they save."""


@dataclass
class _Record:
    """What the trials of one candidate on one workload have shown so far."""

    kept: list[dict[str, int]] = field(default_factory=list[dict[str, int]])
    inputs: set[int] = field(default_factory=set[int])
    outputs: set[int] = field(default_factory=set[int])


class Judge:
    """Holds what candidates send against a reference, trial by trial."""

    def __init__(self, device: Backend) -> None:
        self._device = device
        self._fingerprints = Fingerprints()
        self._record = _Record()
        self._held: tuple[Draw, Expectation] | None = None
        self._first: dict[str, int] = {}
        self._state: object = None
        self._random: RandomTrial | None = None
        self.by_distribution: set[str] = set()
        """Outputs of the present candidate that are random, and were not judged by value."""

    def new_state(self, draw: Draw) -> bool:
        """Returns whether the candidate does not hold the weights of a draw."""
        return draw.state is not self._state

    def let_go(self) -> None:
        """Lets go of the draw that was judged last, and of what was right for it: no further call on it will come."""
        self._held = self._random = None

    def hold(self, reference: Reference, draw: Draw, folder: Path, sent: dict[str, Any]) -> dict[str, Any]:
        """Returns `leaves` with their ratios and, where it fails, `status` and `message`; or `skipped` with a reason.

        `notes` are what else there is to say. A draw may be judged several times, once a call. Where random values are
        others than PyTorch's generator gives, the answer is `calls`: how many more `hold_random` wants to see.
        """
        try:
            output, changed, gradients = self._all_of(sent, folder)
        except UNREADABLE as error:
            return _unreadable(error)
        again = self._held is not None and self._held[0] is draw
        try:
            expected = self._held[1] if again and self._held else reference.expect(draw)
        except Inapplicable as reason:
            return {"skipped": str(reason)}
        self._held = (draw, expected)
        self._state = None if reference.changes_state or draw.trial.state == "continued" else draw.state
        # First of all, since a few bytes may claim to be a tensor of any size.
        if (fault := structure_mismatch(output, expected.output) or _elsewhere(output, expected.output)) is not None:
            return _fault(fault)
        marks = self._note_marks(output)
        notes = ["not deterministic: calls on the same input differ"] * (again and marks != self._first)
        self._first = self._first if again else marks
        self._note_evidence(draw, expected)
        verdict = self._leaves(reference, draw, expected.leaves, output, changed, gradients)
        if verdict.get("status") == "WRONG_VALUE" and reference.stochastic and by_distribution(draw.trial):
            given = {**draw.before(), **changed, **dict(walk(output, "output")), **gradients}
            by_value = lambda leaf: self._measured(reference, draw, leaf, given, expected.leaves[leaf])  # noqa: E731
            self._random = RandomTrial(reference, draw, expected.leaves, by_value)
            return {"calls": CALLS}
        return {**verdict, "notes": [*notes, *verdict.get("notes", [])]}

    def hold_random(self, folder: Path, sent: dict[str, Any], seed: int, last: bool) -> dict[str, Any]:
        """Takes one more call on the draw that was judged, under another seed; after the last, returns as `hold`."""
        assert self._random is not None, "hold asks for it"
        assert self._held is not None
        draw, expected = self._held
        try:
            output, changed, gradients = self._all_of(sent, folder)
        except UNREADABLE as error:
            return _unreadable(error)
        if (fault := structure_mismatch(output, expected.output) or _elsewhere(output, expected.output)) is not None:
            return _fault(fault)
        self._note_marks(output)
        if (fault := _extra(changed, expected.leaves)) is not None:
            return _fault(fault)
        given = {**draw.before(), **changed, **dict(walk(output, "output")), **gradients}
        if (fault := self._random.add(given, seed)) is not None:
            return _fault(fault)
        return self._of_all_calls(self._random) if last else {}

    def begin(self) -> None:
        """Starts with another candidate."""
        self.forget()
        self.by_distribution = set()

    def forget(self) -> None:
        """Forgets the calls of a candidate, which may have ended in the midst of its trials."""
        self._record, self._held, self._state, self._random = _Record(), None, None, None

    def finish(self, reference: Reference, folder: Path, now: list[Tree]) -> dict[str, Any]:
        """Returns what all trials of a workload say together, and forgets them.

        An output that shares memory with an input or weight by the reference's own doing may change.
        """
        record = self._record
        self.forget()
        answer: dict[str, Any] = {}
        for call, (before, tree) in enumerate(zip(record.kept, now, strict=False)):
            try:
                after = self._fingerprints.of(self._read(tree, folder))
            except UNREADABLE:
                after = {}
            for leaf in before.keys() - reference.output_shares_input:
                if after.get(leaf) != before[leaf] and "changed" not in answer:
                    answer["changed"] = f"{leaf} of call {call + 1} was changed by a later call: its memory is reused"
        if len(record.inputs) == 1:
            answer["weak"] = "weak evidence: the task draws the same inputs each time, and none could be redrawn"
        elif len(record.outputs) == 1 and len(record.inputs) > 1:
            answer["weak"] = f"weak evidence: the output is the same for all {len(record.inputs)} draws of the inputs"
        return answer

    def _leaves(
        self,
        reference: Reference,
        draw: Draw,
        wanted: dict[str, Expected],
        output: Any,
        changed: dict[str, Any],
        gradients: dict[str, Any],
    ) -> dict[str, Any]:
        if (fault := _extra(changed, wanted)) is not None:
            return _fault(fault)
        sent = {**draw.before(), **changed, **dict(walk(output, "output")), **gradients}
        leaves: list[dict[str, Any]] = []
        notes: list[str] = []
        for leaf, expected in wanted.items():
            outcome = self._measured(reference, draw, leaf, sent, expected)
            notes += [f"{leaf}: {expected.note}"] if expected.note else []
            if isinstance(outcome, Measured):
                leaves.append(asdict(outcome))
                if expected.exact and 0 < outcome.excess <= 1:
                    notes.append(f"{leaf}: whole numbers come out rounded, as a transform in between does")
                outcome = None if outcome.passed else outcome.miss()
            if outcome is not None:
                return {**_fault(outcome), "leaves": leaves, "notes": notes}
        if not any(leaf["elements"] for leaf in leaves) and draw.trial.shape != "empty":
            if not draw.trial.own:
                return {"skipped": "reference and oracle agree on no element"}
            return _fault(Mismatch("REJECTED", "nothing was compared: no output has an element to judge"))
        return {"leaves": leaves, "notes": notes}

    def _of_all_calls(self, trial: RandomTrial) -> dict[str, Any]:
        """Returns the verdict on all calls of a trial whose outputs are random."""
        self._random = None
        leaves: list[dict[str, Any]] = []
        notes: list[str] = []
        with one_thread():
            outcomes = trial.outcomes()
        for leaf, outcome in outcomes.items():
            fault = outcome
            if isinstance(outcome, Measured):
                leaves.append(asdict(outcome))
                fault = None if outcome.passed else outcome.miss()
                if outcome.by_distribution:
                    self.by_distribution.add(leaf)
                    notes.append(f"{leaf} is random and not drawn as PyTorch draws it: {outcome.worst}, not by value")
            if isinstance(fault, Mismatch):
                return {**_fault(fault), "leaves": leaves, "notes": notes}
        return {"leaves": leaves, "notes": notes}

    def _all_of(self, sent: dict[str, Any], folder: Path) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """Returns output, changed inputs and state, and gradients. Raises what is in UNREADABLE."""
        output = self._read(sent["output"], folder)
        inputs = {f"input {k}": self._read(v, folder) for k, v in sent["inputs"].items()}
        state = {f"buffer {k}": self._read(v, folder) for k, v in sent["state"].items()}
        gradients = {k: self._read(v, folder) for k, v in sent["gradients"].items()}
        return output, {**inputs, **state}, gradients

    def _note_marks(self, output: Any) -> dict[str, int]:
        """Returns the fingerprints of an output; those of the first calls are kept to the end."""
        marks = self._fingerprints.of(output)
        if len(self._record.kept) < KEPT_CALLS:
            self._record.kept.append(marks)
        return marks

    def _measured(
        self, reference: Reference, draw: Draw, leaf: str, sent: dict[str, Any], expected: Expected
    ) -> Measured | Mismatch | None:
        if leaf not in sent:
            return Mismatch("WRONG_VALUE", f"{leaf} is missing: autograd finds no way from the output to it")
        value = expected.value
        small = not isinstance(value, torch.Tensor) or value.numel() < _SMALL_ELEMENTS
        with one_thread() if small else nullcontext():
            outcome = measure(leaf, sent[leaf], expected)
        if not isinstance(outcome, Measured) or expected.exact or expected.close is not None:
            return outcome
        own = draw.trial.own and not draw.trial.gradients
        if tolerance.asks_again(outcome.excess, outcome.elements, own):
            return measure(leaf, sent[leaf], reference.reconsidered(draw, leaf, expected))
        return outcome

    def _read(self, tree: Tree, folder: Path) -> Any:
        return read_tree(tree, folder, device=self._device)

    def _note_evidence(self, draw: Draw, expected: Expectation) -> None:
        """Takes down whether inputs and outputs differ from draw to draw at all."""
        if draw.trial.required:
            self._record.inputs.add(hash(tuple(self._fingerprints.of([list(draw.call)]).values())))
            self._record.outputs.add(hash(tuple(self._fingerprints.of(expected.output).values())))


def _elsewhere(candidate: Any, reference: Any) -> Mismatch | None:
    """Returns the first tensor that lies on another device than the reference's."""
    for (name, mine), (_, theirs) in zip(walk(candidate, "output"), walk(reference, "output"), strict=True):
        if isinstance(mine, torch.Tensor) and mine.device.type != theirs.device.type:
            return Mismatch(
                "REJECTED", f"{name} is on {mine.device.type}; the reference gives it on {theirs.device.type}"
            )
    return None


def _extra(changed: dict[str, Any], wanted: dict[str, Expected]) -> Mismatch | None:
    """Returns the first input or buffer that was changed and should not have been."""
    extra = sorted(set(changed) - set(wanted))
    return Mismatch("WRONG_VALUE", f"{extra[0]} was changed; the reference leaves it alone") if extra else None


def _unreadable(error: BaseException) -> dict[str, Any]:
    return _fault(Mismatch("REJECTED", f"what the candidate sent can't be read: {error}"))


def _fault(mismatch: Mismatch) -> dict[str, Any]:
    return {"status": mismatch.status, "message": mismatch.message, "leaves": []}
