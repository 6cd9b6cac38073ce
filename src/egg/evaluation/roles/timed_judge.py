"""What the reference worker says about outputs that came out of timed calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.compare import Expected, Measured, measure, structure_mismatch
from egg.evaluation.correctness.distribution import unseen
from egg.evaluation.correctness.judge import Judge
from egg.evaluation.correctness.reference import Draw, Reference
from egg.evaluation.correctness.samples import sample_mismatch
from egg.evaluation.roles.inputs import digest as committed_digest
from egg.evaluation.roles.stopwatch import Stopwatch
from egg.evaluation.roles.timed import TimedOperations, sampled
from egg.evaluation.tensors import UNREADABLE, Tree, map_tensors, own_copy, read_tree, walk

_RANDOM_CALLS = 2
"""Timed calls of a block that are looked at where outputs are random: each takes many runs of the reference."""
_RANDOM_RUNS = 24


class JudgesTimedCalls(TimedOperations):
    """Runs the reference on the very inputs of timed calls and holds what was shown of them against it."""

    _workload: str = ""
    _judge: Judge

    def do_judge_timed(
        self, links: list[int], calls: list[int], seed: int, elements: int, sampled_tree: Tree, folder: str
    ) -> dict[str, Any]:
        """Returns why elements shown of some calls of a block are wrong; nothing where they are right."""
        try:
            shown = read_tree(sampled_tree, Path(folder))
            given = {call: shown[str(call)] for call in calls}
        except UNREADABLE as error:
            return {"wrong": f"what was shown of timed calls can't be read: {error}"}
        self.restart()
        for call, wanted in self._answers(links, calls):
            cut = map_tensors(sampled(wanted, seed, elements), self._device.home)
            if message := self._mismatch(given[call], cut):
                return {"wrong": f"timed call {call + 1} of {len(links)}: {message}"}
        for call in calls[:_RANDOM_CALLS] if self._judge.by_distribution else ():
            if message := self._never_given(given[call], call, links[call], seed, elements):
                return {"wrong": f"timed call {call + 1} of {len(links)}: {message}"}
        return {}

    def do_judge_whole(self, call: int, link: int, digest: str, whole: Tree, folder: str) -> dict[str, Any]:
        """Returns why the whole output of one timed call is wrong, by the oracle; nothing where it is right."""
        try:
            output = read_tree(whole, Path(folder), device=self._device)
        except UNREADABLE as error:
            return {"wrong": f"the output of a timed call can't be read: {error}"}
        if committed_digest(output) != int(digest):
            return {"wrong": f"the output of timed call {call + 1} is no longer what it was when its block ended"}
        draw = self._timed_draw(map_tensors(self._watch().inputs.changed(call, link), own_copy), link)
        expected = self._reference_itself().expect(draw)
        if (fault := structure_mismatch(output, expected.output)) is not None:
            return {"wrong": f"timed call {call + 1}: {fault.message}"}
        for leaf, value in walk(output, "output"):
            if leaf in self._judge.by_distribution:
                continue  # elements of it were held against what the reference gives
            if leaf in expected.leaves and (message := self._miss(draw, leaf, value, expected.leaves[leaf])):
                return {"wrong": f"timed call {call + 1}: {message}"}
        return {}

    def _answers(self, links: list[int], calls: list[int]) -> Any:
        """Yields number and output of the reference for some calls; for all before too where calls leave traces."""
        watch: Stopwatch = self._watch()
        wanted = set(calls)
        every = self._reference_itself().changes_state
        with torch.no_grad():
            for call in range(max(wanted) + 1):
                if call in wanted:
                    yield call, watch.call(call, links[call])
                elif every:
                    watch.call(call, links[call])

    def _timed_draw(self, call: Any, link: int) -> Draw:
        return self._reference_itself().draw_of(call, link % 2**32, self._workload)

    def _mismatch(self, given: Any, wanted: Any) -> str | None:
        if (fault := structure_mismatch(given, wanted)) is not None:
            return fault.message
        reference = self._reference_itself()
        relative, absolute = reference.relative_error, reference.absolute_error
        for (leaf, mine), (_, theirs) in zip(walk(given, "output"), walk(wanted, "output"), strict=True):
            if leaf in reference.choosing or leaf in self._judge.by_distribution:
                continue  # ties are judged where the values are at hand that were chosen from
            if isinstance(mine, torch.Tensor):
                message = sample_mismatch(mine, theirs, relative.get(leaf, 0.0), absolute.get(leaf, 0.0))
            else:
                message = None if mine == theirs else f"{mine!r}; expected {theirs!r}"
            if message:
                return f"{leaf}: {message}"
        return None

    def _never_given(self, given: Any, call: int, link: int, seed: int, elements: int) -> str | None:
        """Returns which random output of a timed call holds values that the reference gives under no seed.

        Where the reference's own values hardly repeat from seed to seed, nothing can be said, and nothing is.
        """
        draw = self._timed_draw(map_tensors(self._watch().inputs.changed(call, link), own_copy), link)
        runs = [self._reference_itself().outputs(draw, (link + i) % 2**32) for i in range(1, _RANDOM_RUNS + 1)]
        known = [dict(walk(map_tensors(sampled(run, seed, elements), self._device.home), "output")) for run in runs]
        self.restart()
        mine = dict(walk(given, "output"))
        for leaf in sorted(self._judge.by_distribution & known[0].keys()):
            rows = torch.stack([run[leaf].reshape(-1) for run in known]).double()
            relative = tolerance.SAMPLED_FACTOR * max(
                self._reference_itself().relative_error.get(leaf, 0.0), tolerance.SAMPLED_FACTOR * _unit(mine[leaf])
            )
            absolute = relative * rows.abs().mean().item()
            others = [
                unseen(row, torch.cat([rows[:i], rows[i + 1 :]]), absolute, relative) for i, row in enumerate(rows)
            ]
            share = unseen(mine[leaf].reshape(-1).double(), rows, absolute, relative)
            if share > tolerance.RANDOM_UNSEEN_FACTOR * max(others) + tolerance.RANDOM_UNSEEN_SHARE:
                return f"{leaf}: {100 * share:.3g} % of the elements hold values that the reference never gives there"
        return None

    def _miss(self, draw: Draw, leaf: str, value: Any, expected: Expected) -> str | None:
        outcome = measure(leaf, value, expected)
        if isinstance(outcome, Measured) and tolerance.asks_again(outcome.excess, outcome.elements):
            outcome = measure(leaf, value, self._reference_itself().reconsidered(draw, leaf, expected))
        if isinstance(outcome, Measured):
            outcome = None if outcome.passed else outcome.miss()
        return outcome.message if outcome is not None else None

    def _reference_itself(self) -> Reference:
        raise NotImplementedError


def _unit(tensor: torch.Tensor) -> float:
    return torch.finfo(tensor.dtype).eps if tensor.is_floating_point() or tensor.is_complex() else 0.0
