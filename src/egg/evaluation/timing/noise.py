"""The noise floor: the reference against itself, along the whole path that a candidate takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from egg.evaluation.desk import ReferenceDesk
from egg.evaluation.timing.figures import ImpossibleTimes, Timed
from egg.evaluation.timing.interleave import Comparison
from egg.evaluation.timing.legs import TimedLeg, Timer, time_legs
from egg.schema.evaluation import Timing
from egg.schema.task import Task


@dataclass(frozen=True)
class NoiseFloor:
    """How far the reference timed against itself is off 1, in percent: by workload, and there by clock.

    Each clock has a noise of its own, so figures are held against the floor of theirs and no other.
    """

    pct: Mapping[str, Mapping[str, float]]

    def of(self, timings: Sequence[Timing]) -> float | None:
        """Returns the largest floor that these figures have by their own clocks; None where none was measured."""
        found = [floor for t in timings if (floor := self._floor(t)) is not None]
        return max(found, default=None)

    def guarded(self, timing: Timing) -> Timing:
        """Returns figures that claim nothing where the floor by their clock is not known."""
        if timing.no_claim or self._floor(timing) is not None:
            return timing
        return timing.updated(
            no_claim=f"the reference could not be timed against itself by the {clock_of(timing.method)} clock"
        )

    def _floor(self, timing: Timing) -> float | None:
        return self.pct.get(timing.workload, {}).get(clock_of(timing.method))


def timed_against_itself(
    task: Task, first: ReferenceDesk, second: ReferenceDesk, timer: Timer, folder: Path
) -> NoiseFloor:
    """Returns the noise floor of a task from two workers that both run the reference.

    Their inputs are written in `folder`. A workload whose times can't be has no floor.
    """
    found: dict[str, Mapping[str, float]] = {}
    legs = [TimedLeg(f"reference {i}", desk.ask, _last_ask(desk)) for i, desk in enumerate((first, second), 1)]
    for workload in task.workloads:
        seeds = [timer.random.getrandbits(32) for _ in range(2)]
        for desk in (first, second):
            desk.pool(folder, workload.name, seeds)
        try:
            found[workload.name] = floors_pct(time_legs(legs[0], legs[1], timer))
        except ImpossibleTimes:  # a busy machine stopped one of them for long
            continue
    return NoiseFloor(found)


def floors_pct(timed: Timed) -> dict[str, float]:
    """Returns the noise floor by each clock that was read, in percent."""
    return {clock: floor_pct(comparison) for clock, comparison in timed.by_clock.items()}


def floor_pct(found: Comparison) -> float:
    """Returns how far from 1 the interval of a ratio reaches that is 1 by nature, in percent."""
    return 100 * max(found.high - 1, 1 - found.low)


def clock_of(method: str) -> str:
    """Returns the clock that figures come from: `host` for `host, held to caller`."""
    return method.partition(",")[0]


def _last_ask(desk: ReferenceDesk) -> Callable[[], float]:
    return lambda: desk.worker.last_ask_s
