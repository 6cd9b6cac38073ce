"""Interleaved timing of two workers that stay alive side by side, commanded block by block."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from filelock import FileLock, Timeout

from egg.evaluation.correctness import tolerance
from egg.evaluation.timing.interleave import Comparison, Pace, block_order, compare, plan_blocks
from egg.evaluation.workers.wire import Message

LOCK_WAIT_S = 120.0


@dataclass(frozen=True)
class TimedLeg:
    """One of the two workers: how to ask it, and how long its last answer took on the caller's clock."""

    name: str
    ask: Callable[..., Message]
    last_ask_s: Callable[[], float]


class ImpossibleTimes(Exception):
    """A worker reported times that the caller's own clock rules out."""


@contextmanager
def quiet_host(lock_path: Path) -> Generator[str]:
    """Holds the lock that keeps other runs of this host from timing now; yields `held` or why it is not."""
    lock = FileLock(lock_path, mode=0o666)
    try:
        lock.acquire(timeout=LOCK_WAIT_S)
    except Timeout:
        yield f"not held: another run kept it for {LOCK_WAIT_S:g} s"
        return
    try:
        yield "held"
    finally:
        lock.release()


def time_legs(
    first: TimedLeg, second: TimedLeg, pace: Pace, left_s: Callable[[], float], random: Random
) -> tuple[Comparison, list[str]]:
    """Returns the comparison of two legs, and what looked odd about it. Raises ImpossibleTimes."""
    typical_s = [_warm_up(leg, pace) for leg in (first, second)]
    plan = plan_blocks(pace, typical_s[0], typical_s[1], max(left_s(), 0.0))
    blocks: tuple[list[list[int]], list[list[int]]] = ([], [])
    gaps_s: tuple[list[float], list[float]] = ([], [])
    findings: list[str] = []
    for pair in block_order(plan.pairs, random):
        for is_first in pair:
            leg, calls, at = (first, plan.first_calls, 0) if is_first else (second, plan.second_calls, 1)
            answer = leg.ask("block", calls=calls)
            times = [int(t) for t in answer["host_ns"]]
            asked_s = leg.last_ask_s()
            if len(times) != calls or min(times, default=0) <= 0 or sum(times) > asked_s * 1e9:
                raise ImpossibleTimes(f"{leg.name}: {calls} calls in {asked_s:.3g} s can't have taken {times[:5]} ns")
            blocks[at].append(times)
            gaps_s[at].append(asked_s - int(answer["block_ns"]) / 1e9)
    hidden_s, usual_s = median(gaps_s[0]), median(gaps_s[1])
    if hidden_s > tolerance.CLOCK_SLACK_S + tolerance.CLOCK_FACTOR * usual_s:
        findings.append(
            f"{first.name}: a block takes {1e3 * hidden_s:.3g} ms more on the caller's clock than it reports; "
            f"{second.name} {1e3 * usual_s:.3g} ms"
        )
    return compare(blocks[0], blocks[1], random), findings


def _warm_up(leg: TimedLeg, pace: Pace) -> float:
    answer = leg.ask("warm_up", limit_s=pace.warm_up_limit_s, min_calls=pace.warm_up_calls, min_s=pace.warm_up_s)
    return max(float(answer["typical_s"]), 1e-7)
