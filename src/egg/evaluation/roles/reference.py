"""What a reference worker does: it owns the task, the seeds, the float64 oracle and the comparison."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from egg.evaluation.audit.gate import Gate
from egg.evaluation.calls import one_thread, settings
from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.compare import Expected, Measured, Mismatch, measure, structure_mismatch
from egg.evaluation.correctness.reference import Draw, Reference
from egg.evaluation.devices.backend import open_device
from egg.evaluation.roles.inputs import Inputs
from egg.evaluation.roles.rungs import RUNGS
from egg.evaluation.roles.stopwatch import KEPT_CALLS, Stopwatch
from egg.evaluation.roles.timed_judge import UNREADABLE, JudgesTimedCalls
from egg.evaluation.tensors import Tree, map_tensors, read_tree, span, walk, write_tree
from egg.schema.base import content_hash
from egg.schema.task import Task
from egg.tasks.load import init_arguments


class Operations(JudgesTimedCalls):
    """The operations by name. No candidate code ever runs here."""

    def __init__(self, target: str = "cpu") -> None:
        self._device = open_device(target)
        self._reference: Reference | None = None
        self._draw: Draw | None = None
        self._digests: list[dict[str, str]] = []
        self._function: Any = None

    def do_load(self, task: str, folder: str) -> dict[str, Any]:
        """Builds the reference and writes the arguments of its constructor."""
        record = Task.model_validate_json(task)
        self._reference = Reference(record, self._device.torch_device)
        self._function = self._reference.module
        init = init_arguments(record, self._reference.seed)
        return {
            "init": write_tree(init, Path(folder), "init", trusted=True),
            "seed": self._reference.seed,
            "described": {"torch": torch.__version__, **settings(), **self._device.describe()},
        }

    def do_begin(self) -> dict[str, Any]:
        """Forgets the calls of the candidate before, which may have ended in the midst of its trials."""
        self._digests = []
        return {}

    def do_draw(self, folder: str, workload: str, seed: int, kind: str, state: bool) -> dict[str, Any]:
        """Draws inputs (and weights) under a seed and writes them; an empty answer where the kind does not apply."""
        self._device.release_sent()
        with one_thread():
            self._draw = self._ready().draw(workload, seed, kind, state)
        if self._draw is None:
            return {}
        answer: dict[str, Any] = {"inputs": self._written(self._draw.call, folder, "given")}
        if state or self._ready().changes_state:
            answer["state"] = self._written(self._draw.state, folder, "weights")
        return answer

    def do_judge(self, folder: str, sent: dict[str, Any]) -> dict[str, Any]:
        """Runs the reference and the oracle on the last draw and holds what the candidate sent against them."""
        draw = self._draw
        assert draw is not None, "do_draw comes first"
        where = Path(folder)
        try:
            output = read_tree(sent["output"], where, device=self._device)
            inputs = {k: read_tree(v, where, device=self._device) for k, v in sent["inputs"].items()}
            state = {k: read_tree(v, where, device=self._device) for k, v in sent["state"].items()}
        except UNREADABLE as error:
            return _fault(Mismatch("REJECTED", f"what the candidate sent can't be read: {error}"))
        expected = self._ready().expect(draw)
        # First of all, since a few bytes may claim to be a tensor of any size.
        if (fault := structure_mismatch(output, expected.output) or _elsewhere(output, expected.output)) is not None:
            return _fault(fault)
        if len(self._digests) < KEPT_CALLS:
            self._digests.append(_digests(output))
        return self._hold(draw, expected.leaves, output, inputs, state)

    def _hold(self, draw: Draw, wanted: dict[str, Expected], output: Any, inputs: Any, state: Any) -> dict[str, Any]:
        changed = {**{f"input {k}": v for k, v in inputs.items()}, **{f"buffer {k}": v for k, v in state.items()}}
        if extra := sorted(set(changed) - set(wanted)):
            return _fault(Mismatch("WRONG_VALUE", f"{extra[0]} was changed; the reference leaves it alone"))
        sent = {**draw.before(), **changed, **dict(walk(output, "output"))}
        sources = [v for v in draw.before().values() if isinstance(v, torch.Tensor)]
        sources += [e.value for e in wanted.values() if isinstance(e.value, torch.Tensor)]
        leaves: list[dict[str, Any]] = []
        for leaf, expected in wanted.items():
            with one_thread():
                outcome = measure(leaf, sent[leaf], expected, sources)
            if isinstance(outcome, Measured) and tolerance.asks_again(outcome.excess, outcome.elements):
                outcome = measure(leaf, sent[leaf], self._ready().reconsidered(draw, leaf, expected))
            if isinstance(outcome, Measured):
                leaves.append(asdict(outcome))
                outcome = None if outcome.passed else outcome.miss()
            if outcome is not None:
                return {**_fault(outcome), "leaves": leaves}
        if not leaves:
            return _fault(Mismatch("REJECTED", "nothing was compared: no output has an element"))
        return {"leaves": leaves}

    def do_unchanged(self, folder: str, now: list[Tree]) -> dict[str, Any]:
        """Returns the first output of an earlier call that is no longer what it was; nothing where all are.

        An output that shares memory with an input or weight by the reference's own doing is left out.
        """
        first, self._digests = self._digests, []
        shared = self._ready().output_shares_input
        for call, (before, tree) in enumerate(zip(first, now, strict=False)):
            try:
                after = _digests(read_tree(tree, Path(folder)))
            except UNREADABLE:
                after = {}
            for leaf in before.keys() - shared:
                if after.get(leaf) != before[leaf]:
                    return {"changed": f"{leaf} of call {call + 1} was changed by a later call: its memory is reused"}
        return {}

    def do_audit(
        self, workload: str, kind: str, state: bool, seeds: list[int], only: list[str] | None
    ) -> dict[str, Any]:
        """Holds trivial answers against the check on one draw; an empty answer where the draws do not apply."""
        probes = Gate(self._ready()).hold(workload, kind, state, seeds, only)
        return {} if probes is None else {"probes": probes}

    def do_pool(self, folder: str, workload: str, seeds: list[int], limit_bytes: int) -> dict[str, Any]:
        """Draws the inputs of the timed calls, fewer where they are large, and writes them."""
        reference = self._ready()
        self._device.release_sent()
        calls: list[Any] = []
        trees: list[Tree] = []
        total = 0
        for i, seed in enumerate(seeds):
            draw = reference.draw(workload, seed, "own", False)
            assert draw is not None
            total += _nbytes(draw.call)
            if calls and total > limit_bytes:
                break
            calls.append(draw.call)
            trees.append(self._written(draw.call, folder, f"pool{i}_"))
        fresh = reference.changes_inputs or bool(reference.output_shares_input)
        seeded = reference.uses_random_numbers(reference.draw_of(calls[0], 0, workload))
        self._workload = workload
        self._stopwatch = Stopwatch(self._device, self._function, Inputs(calls), fresh, seeded)
        return {"pool": trees, "fresh_inputs": fresh, "seeded": seeded, "restart": reference.changes_state}

    def do_transform(self, rung: str) -> dict[str, Any]:
        """Replaces what is timed by a rung of the ladder."""
        self._function = RUNGS[rung](self._ready().module)
        return {}

    def restart(self) -> None:
        """Puts back what calls change."""
        self._ready().restart()

    def _reference_itself(self) -> Reference:
        return self._ready()

    def _written(self, value: Any, folder: str, prefix: str) -> Tree:
        return write_tree(value, Path(folder), prefix, trusted=True, device=self._device)

    def _ready(self) -> Reference:
        assert self._reference is not None, "do_load comes first"
        return self._reference


def _digests(output: Any) -> dict[str, str]:
    leaves = [(k, v) for k, v in walk(output, "output") if isinstance(v, torch.Tensor)]
    return {k: content_hash(v.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()) for k, v in leaves}


def _elsewhere(candidate: Any, reference: Any) -> Mismatch | None:
    """Returns the first tensor that lies on another device than the reference's."""
    for (name, mine), (_, theirs) in zip(walk(candidate, "output"), walk(reference, "output"), strict=True):
        if isinstance(mine, torch.Tensor) and mine.device.type != theirs.device.type:
            return Mismatch(
                "REJECTED", f"{name} is on {mine.device.type}; the reference gives it on {theirs.device.type}"
            )
    return None


def _fault(mismatch: Mismatch) -> dict[str, Any]:
    return {"status": mismatch.status, "message": mismatch.message, "leaves": []}


def _nbytes(call: Any) -> int:
    total = 0

    def add(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal total
        total += span(list(tensor.shape), list(tensor.stride())) * tensor.element_size()
        return tensor

    map_tensors(call, add)
    return total
