"""The noise floor: the reference against itself, along the whole path that a candidate takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from egg.evaluation.desk import ReferenceDesk
from egg.evaluation.timing.figures import ImpossibleTimes, Timed
from egg.evaluation.timing.interleave import Comparison
from egg.evaluation.timing.legs import TimedLeg, Timer, time_legs
from egg.schema.evaluation import Timing
from egg.schema.task import Task

STRAY = 1.5
"""Times the edges of its band, beyond which the reference is not the one that was timed against itself."""


@dataclass(frozen=True)
class NoiseFloor:
    """How far the reference timed against itself is off 1, in percent: by workload, and there by clock.

    Each clock has a noise of its own, so figures are held against the floor of theirs and no other.
    """

    pct: Mapping[str, Mapping[str, float]]
    bands_ms: Mapping[str, Mapping[str, tuple[float, float]]] = field(
        default_factory=dict[str, Mapping[str, tuple[float, float]]]
    )
    """Between which times eight of ten calls of the reference lay, fixed here for all candidates that follow."""

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

    def strayed(self, timing: Timing) -> str:
        """Returns what is odd about the reference's time beside a candidate; empty where it lies about its band."""
        band = self.bands_ms.get(timing.workload, {}).get(clock_of(timing.method))
        if band is None or band[0] / STRAY <= timing.reference_ms <= band[1] * STRAY:
            return ""
        return (
            f"the reference took {timing.reference_ms:.4g} ms on {timing.workload} beside this candidate, "
            f"and {band[0]:.4g} to {band[1]:.4g} ms against itself"
        )

    def _floor(self, timing: Timing) -> float | None:
        return self.pct.get(timing.workload, {}).get(clock_of(timing.method))


def timed_against_itself(task: Task, first: ReferenceDesk, second: ReferenceDesk, timer: Timer) -> NoiseFloor:
    """Returns the noise floor of a task from two workers that both run the reference, each on inputs it draws itself.

    A workload whose times can't be has no floor.
    """
    found: dict[str, Mapping[str, float]] = {}
    bands_ms: dict[str, Mapping[str, tuple[float, float]]] = {}
    legs = [TimedLeg(f"reference {i}", desk.ask, _last_ask(desk)) for i, desk in enumerate((first, second), 1)]
    for workload in task.workloads:
        seeds = [timer.random.getrandbits(32) for _ in range(2)]
        # The second has seen the task's calls, and so knows what has to be done around them.
        like = {k: v for k, v in second.pool(None, workload.name, seeds).items() if k != "pool"}
        first.pool(None, workload.name, seeds, like)
        try:
            timed = time_legs(legs[0], legs[1], timer)
        except ImpossibleTimes:  # a busy machine stopped one of them for long
            continue
        found[workload.name], bands_ms[workload.name] = floors_pct(timed), bands_of(timed)
    return NoiseFloor(found, bands_ms)


def floors_pct(timed: Timed) -> dict[str, float]:
    """Returns the noise floor by each clock that was read, in percent."""
    return {clock: floor_pct(comparison) for clock, comparison in timed.by_clock.items()}


def bands_of(timed: Timed) -> dict[str, tuple[float, float]]:
    """Returns from the 10th to the 90th percentile of two legs that are alike, by each clock that was read."""
    return {
        clock: (min(c.first.p10_ms, c.second.p10_ms), max(c.first.p90_ms, c.second.p90_ms))
        for clock, c in timed.by_clock.items()
    }


def floor_pct(found: Comparison) -> float:
    """Returns how far from 1 the interval of a ratio reaches that is 1 by nature, in percent."""
    return 100 * max(found.high - 1, 1 - found.low)


def clock_of(method: str) -> str:
    """Returns the clock that figures come from: `host` for `host, held to caller`."""
    return method.partition(",")[0]


def _last_ask(desk: ReferenceDesk) -> Callable[[], float]:
    return lambda: desk.worker.last_ask_s
