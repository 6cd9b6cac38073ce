"""The noise floor: the reference against itself, along the whole path that a candidate takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from egg.evaluation.desk import ReferenceDesk
from egg.evaluation.timing.interleave import Comparison
from egg.evaluation.timing.legs import TimedLeg, Timer, time_legs
from egg.schema.task import Task


def timed_against_itself(task: Task, first: ReferenceDesk, second: ReferenceDesk, timer: Timer, folder: Path) -> float:
    """Returns the noise floor in percent over all workloads of a task, from two workers that both run the reference.

    Their inputs are written in `folder`.
    """
    found: list[Comparison] = []
    legs = [TimedLeg(f"reference {i}", desk.ask, _last_ask(desk)) for i, desk in enumerate((first, second), 1)]
    for workload in task.workloads:
        seeds = [timer.random.getrandbits(32) for _ in range(2)]
        for desk in (first, second):
            desk.pool(folder, workload.name, seeds)
        found.append(time_legs(legs[0], legs[1], timer).comparison)
    return max(floor_pct(comparison) for comparison in found)


def floor_pct(found: Comparison) -> float:
    """Returns how far from 1 the interval of a ratio reaches that is 1 by nature, in percent."""
    return 100 * max(found.high - 1, 1 - found.low)


def _last_ask(desk: ReferenceDesk) -> Callable[[], float]:
    return lambda: desk.worker.last_ask_s
