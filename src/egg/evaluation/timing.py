"""Interleaved timing of two workers that stay alive side by side, commanded block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from filelock import FileLock, Timeout

from egg.evaluation import tolerance
from egg.evaluation.interleave import Comparison, Pace, block_order, compare, plan_blocks
from egg.evaluation.wire import Message

LOCK_WAIT_S = 120.0


@dataclass(frozen=True)
class TimedLeg:
    """One of the two workers: how to ask it, and how long its last answer took on the caller's clock."""

    name: str
    ask: Callable[..., Message]
    last_ask_s: Callable[[], float]


@contextmanager
def quiet_host(lock_path: Path) -> Iterator[str]:
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
    """Returns the comparison of two legs, and what looked odd about it."""
    typical_s = [_warm_up(leg, pace) for leg in (first, second)]
    plan = plan_blocks(pace, typical_s[0], typical_s[1], max(left_s(), 0.0))
    blocks: tuple[list[list[int]], list[list[int]]] = ([], [])
    odd: dict[str, int] = {}
    for pair in block_order(plan.pairs, random):
        for is_first in pair:
            leg, calls = (first, plan.first_calls) if is_first else (second, plan.second_calls)
            answer = leg.ask("block", calls=calls)
            times = [int(t) for t in answer["times_ns"]]
            blocks[0 if is_first else 1].append(times)
            reason = _oddity(times, calls, int(answer["block_ns"]), leg.last_ask_s())
            if reason:
                odd[f"{leg.name}: {reason}"] = odd.get(f"{leg.name}: {reason}", 0) + 1
    findings = [f"{what} in {n} of {plan.pairs} blocks" for what, n in odd.items() if n > plan.pairs // 4]
    return compare(blocks[0], blocks[1], random), findings


def _warm_up(leg: TimedLeg, pace: Pace) -> float:
    answer = leg.ask("warm_up", limit_s=pace.warm_up_limit_s, min_calls=pace.warm_up_calls, min_s=pace.warm_up_s)
    return max(float(answer["typical_s"]), 1e-7)


def _oddity(times_ns: list[int], calls: int, block_ns: int, asked_s: float) -> str:
    """Returns how the reported times disagree with the caller's own clock; empty where they agree."""
    if len(times_ns) != calls or min(times_ns, default=0) <= 0:
        return "the reported times are not one positive figure a call"
    if sum(times_ns) > asked_s * 1e9 or block_ns > asked_s * 1e9:
        return "the reported times are longer than the request took"
    if asked_s > block_ns / 1e9 * tolerance.CLOCK_FACTOR + tolerance.CLOCK_SLACK_S:
        return "the request took far longer than the reported times"
    return ""
