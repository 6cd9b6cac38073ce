"""Measures the rungs of the baseline ladder, each in a worker of its own, interleaved with eager."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from pathlib import Path
from random import Random

from egg.errors import UsageError
from egg.evaluation.crew import Crew, Engaged, difference_in_settings
from egg.evaluation.roles.rungs import RUNGS
from egg.evaluation.tiers import PLANS
from egg.evaluation.timing.figures import Timed
from egg.evaluation.timing.legs import TimedLeg, Timer, quiet_host, time_legs
from egg.evaluation.workers.workplace import WorkerFault, WorkerLost
from egg.schema.evaluation import Baseline

_LEFT_S = 30.0
"""Seconds that the timing of one rung may take on one workload."""


class Ladder:
    """Measures rungs against an eager reference worker."""

    def __init__(self, crew: Crew, lock_path: Path, entropy: Callable[[], int]) -> None:
        self._crew = crew
        self._lock_path = lock_path
        self._entropy = entropy

    def measure(self, eager: Engaged, name: str) -> Baseline:
        """Returns one rung. Raises UsageError for an unknown one; one that can't be built is unavailable."""
        if name not in RUNGS:
            raise UsageError(f"baseline {name!r}: choose one of {', '.join(RUNGS)}")
        rung = self._crew.engage_reference(fresh=False)
        folder = self._crew.exchange()
        try:
            return self._measure(eager, rung, name, folder)
        except (WorkerFault, WorkerLost) as fault:
            if self._crew.config.target != "cpu" and (isinstance(fault, WorkerLost) or fault.cause == "device"):
                self._crew.health.doubt(f"baseline {name} ({fault})")
            return Baseline(name=name, available=False, reason=_reason(fault))
        finally:
            self._crew.dismiss(rung.desk.worker)

    def _measure(self, eager: Engaged, rung: Engaged, name: str, folder: Path) -> Baseline:
        limit_s = self._crew.limits.baseline_build_s
        rung.desk.worker.ask("transform", limit_s, rung=name)
        setup_s = rung.desk.worker.last_ask_s
        timed: dict[str, Timed] = {}
        for workload in self._crew.task.workloads:
            seeds = [self._entropy() for _ in range(PLANS["search"].pool)]
            for worker in (rung.desk, eager.desk):
                worker.pool(folder, workload.name, seeds)
            rung.desk.worker.ask("warm_up", limit_s, limit_s=0.0, min_calls=1, min_s=0.0)
            setup_s += rung.desk.worker.last_ask_s
            timed[workload.name] = self._interleaved(eager, rung, name)
        mine, theirs = (worker.ask("flags")["flags"] for worker in (rung.desk, eager.desk))
        if unlike := difference_in_settings(mine, theirs):
            return Baseline(name=name, available=False, reason=f"not timed as eager is: {unlike}")
        found = {w: t.comparison for w, t in timed.items()}
        ratios = [c.ratio for c in found.values()]
        return Baseline(
            name=name,
            available=True,
            method=" and ".join(dict.fromkeys(t.method for t in timed.values())),
            median_ms={w: c.first.median_ms for w, c in found.items()},
            band_ms={w: (c.first.p10_ms, c.first.p90_ms) for w, c in found.items()},
            flags=mine,
            speedup_over_eager=_geometric_mean(ratios),
            low=_geometric_mean([c.low for c in found.values()]),
            high=_geometric_mean([c.high for c in found.values()]),
            setup_s=setup_s,
            others_pct=max((t.others_pct for t in timed.values() if t.others_pct is not None), default=None),
        )

    def _interleaved(self, eager: Engaged, rung: Engaged, name: str) -> Timed:
        limit_s = self._crew.limits.reference_s
        worker, other = rung.desk.worker, eager.desk.worker
        mine = TimedLeg(name, lambda op, **f: worker.ask(op, limit_s, **f), lambda: worker.last_ask_s, worker.activity)
        theirs = TimedLeg("eager", eager.desk.ask, lambda: other.last_ask_s, other.activity)
        limits = self._crew.limits
        hold = limits.hold_on(self._crew.config.target)
        timer = Timer(PLANS["search"].pace, "own", Random(self._entropy()), lambda: _LEFT_S, hold)
        with quiet_host(self._lock_path):
            return time_legs(mine, theirs, timer)


def _reason(fault: WorkerFault | WorkerLost) -> str:
    if isinstance(fault, WorkerLost):
        return fault.message
    return f"{fault.type}: {fault.message}"


def _geometric_mean(values: list[float]) -> float:
    return exp(sum(map(log, values)) / len(values))
