"""From blocks of timed calls to figures: which clock counts, what is impossible, what is hidden, what may be claimed.

Pure functions of what the workers said and of the caller's own clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import median
from typing import Literal

from egg.evaluation.correctness import tolerance
from egg.evaluation.timing.interleave import Comparison, compare
from egg.evaluation.workers.wire import Message

Method = Literal["own", "caller"]
"""Whose clock counts: the workers' own, per call, or the caller's, per block."""
RESOLUTION_NS = 100
"""A call that took less was not made: entering a module alone takes longer."""
LAUNCH_BOUND_NS = 20_000
"""Below it, what a device's events measure is mostly the way to the device."""
MOST_DISCARDED = 0.2
PRECISE = 0.1
"""Width of the caller's interval, over its ratio, up to which the caller's clock gives the figures itself."""
TOO_SHORT = "a call is too short for the caller's clock; these are the workers' own figures"


class ImpossibleTimes(Exception):
    """A worker reported times that can't be, or that the caller's own clock rules out."""


@dataclass(frozen=True)
class Block:
    """One block of calls, as its worker and the caller saw it."""

    calls: int
    link: int
    host_ns: tuple[int, ...]
    event_ns: tuple[int, ...] | None
    digests: tuple[int, ...]
    asked_s: float
    """From request to reply on the caller's clock."""

    @property
    def outside_s(self) -> float:
        """Seconds on the caller's clock that lie in none of the calls."""
        return self.asked_s - sum(self.host_ns) / 1e9


@dataclass(frozen=True)
class Timed:
    """The comparison of two legs with what it rests on."""

    comparison: Comparison
    method: str
    """`caller`, `host` or `event`."""
    no_claim: str = ""
    """Why nothing may be claimed from the figures; empty where something may."""
    discarded: int = 0
    launch_bound: bool = False
    chained: bool = True
    warm: bool = True
    others_pct: float | None = None
    """Share of the machine's processors that others took meanwhile; None where that is not known."""
    by_clock: dict[str, Comparison] = field(default_factory=dict[str, Comparison])
    """The same legs by each clock that was read: `caller`, and `host` or `event`."""

    def noted(self, discarded: int, trouble: str) -> Timed:
        """Returns the same with how many pairs were discarded, and no claim where they were too many."""
        unstable = discarded > MOST_DISCARDED * (discarded + self.comparison.pairs)
        reason = f"unstable: {discarded} pairs of blocks were discarded: {trouble}" if unstable else self.no_claim
        return replace(self, discarded=discarded, no_claim=reason)


def read_block(name: str, answer: Message, calls: int, link: int, asked_s: float, empty: bool = False) -> Block:
    """Returns a block as a worker told it. Raises ImpossibleTimes where that can't be.

    An `empty` one comes from the trusted worker, and its calls take next to nothing.
    """
    host = _whole_numbers(name, answer.get("host_ns"), calls)
    digests = _whole_numbers(name, answer.get("digests"), calls)
    told = answer.get("event_ns")
    event = None if told == [None] * calls else _whole_numbers(name, told, calls)
    if empty:
        return Block(calls, link, host, event, digests, asked_s)
    for times in (host, event or host):
        if min(times) <= 0 or sum(times) > asked_s * 1e9:
            raise ImpossibleTimes(f"{name}: {calls} calls in {asked_s:.3g} s can't have taken {_few(times)} ns")
    if median(host) < RESOLUTION_NS:
        raise ImpossibleTimes(f"{name}: calls of {median(host):.3g} ns are below what a clock resolves")
    return Block(calls, link, host, event, digests, asked_s)


def evaluate(pairs: Sequence[tuple[Block, Block]], empty: Sequence[Block], method: Method, random: Random) -> Timed:
    """Returns the figures of two legs by one method for both. Raises ImpossibleTimes for work beside the calls."""
    if not pairs:
        raise ImpossibleTimes("no pair of blocks was timed under good conditions")
    first, second = [p[0] for p in pairs], [p[1] for p in pairs]
    _reject_hidden_work(first, second)
    with_events = all(b.event_ns is not None for b in (*first, *second))
    legs = [[(b.event_ns if with_events else b.host_ns) or () for b in leg] for leg in (first, second)]
    own = compare(legs[0], legs[1], random)
    bound = with_events and 1e6 * own.first.median_ms < LAUNCH_BOUND_NS
    clock = "event" if with_events else "host"
    timed = Timed(own, clock, launch_bound=bound, by_clock={clock: own})
    if method == "own":
        return timed
    told = _by_caller(first, second, empty, random)
    if told is None:
        return replace(timed, no_claim=TOO_SHORT)
    chosen = told if told.comparison.spread <= PRECISE else _held_to(timed, told)
    return replace(chosen, by_clock={clock: own, "caller": told.comparison})


def _held_to(timed: Timed, caller: Timed) -> Timed:
    """Returns the workers' own figures, which are finer than the caller's where much surrounds short calls.

    They stand where the caller's interval holds them, and they claim a gain only where the caller's clock sees one.
    A worker that says more than the caller's clock allows has the caller's figures, as wide as these are: it may lie,
    or a busy machine may have spoilt what is taken off a block.
    """
    own, seen = timed.comparison, caller.comparison
    if own.low > (1 + PRECISE) * seen.high:
        return caller
    told = f"{seen.ratio:.3g} [{seen.low:.3g}, {seen.high:.3g}] on the caller's clock"
    reason = f"the caller's clock does not confirm it: {told}" if own.low > 1 >= seen.low else ""
    return replace(timed, method=f"{timed.method}, held to caller", no_claim=reason)


def _by_caller(first: Sequence[Block], second: Sequence[Block], empty: Sequence[Block], random: Random) -> Timed | None:
    """Returns the figures by the caller's clock: a block less what the same block without a call takes, per call.

    That cost is measured in the second worker, which is trusted, and is the same for both legs. None where calls are
    so short that most blocks took no longer than blocks without them.
    """
    fixed_s = {n: median(b.asked_s for b in empty if b.calls == n) for n in {b.calls for b in empty}}
    cost_s = [[b.asked_s - _fixed(fixed_s, b.calls) for b in leg] for leg in (first, second)]
    kept = [i for i in range(len(first)) if cost_s[0][i] > 0 and cost_s[1][i] > 0]
    if len(kept) < 0.5 * len(first):
        return None
    legs = [[[round(1e9 * cost_s[k][i] / leg[i].calls)] for i in kept] for k, leg in enumerate((first, second))]
    found = compare(legs[0], legs[1], random)
    calls = [sum(leg[i].calls for i in kept) for leg in (first, second)]
    found = replace(found, first=replace(found.first, calls=calls[0]), second=replace(found.second, calls=calls[1]))
    events = [e for b in first for e in b.event_ns or ()]
    return Timed(found, "caller", launch_bound=bool(events) and median(events) < LAUNCH_BOUND_NS)


def _fixed(fixed_s: dict[int, float], calls: int) -> float:
    """Returns the cost of a block without calls, from one of another length where this one was not measured."""
    if calls in fixed_s:
        return fixed_s[calls]
    other, cost_s = next(iter(fixed_s.items()))
    return cost_s * calls / other


def _reject_hidden_work(first: Sequence[Block], second: Sequence[Block]) -> None:
    """Raises ImpossibleTimes where the first leg works beside its calls, as the second does not."""
    hidden_s, usual_s = _least([b.outside_s for b in first]), median(b.outside_s for b in second)
    longer = max(1.0, median(a.calls / b.calls for a, b in zip(first, second, strict=True)))
    if hidden_s > tolerance.CLOCK_SLACK_S + tolerance.CLOCK_FACTOR * longer * usual_s:
        raise ImpossibleTimes(
            f"hidden work: a block takes {1e3 * hidden_s:.3g} ms more on the caller's clock than its calls; "
            f"the reference's takes {1e3 * usual_s:.3g} ms"
        )
    gaps = [[h - e for b in leg for h, e in zip(b.host_ns, b.event_ns or (), strict=False)] for leg in (first, second)]
    if all(gaps):
        hidden_ns, usual_ns = _least(gaps[0]), median(gaps[1])
        if hidden_ns > tolerance.EVENT_SLACK_NS + tolerance.CLOCK_FACTOR * max(usual_ns, 0):
            raise ImpossibleTimes(
                f"hidden work: the device is busy for {hidden_ns / 1e3:.3g} us after the events of a call; "
                f"for the reference {usual_ns / 1e3:.3g} us"
            )


def _least(values: Sequence[float]) -> float:
    """Returns what three quarters exceed: what hides work exceeds it in all, what a busy machine held up in some."""
    return sorted(values)[len(values) // 4]


def _whole_numbers(name: str, told: object, calls: int) -> tuple[int, ...]:
    if not isinstance(told, list) or len(told) != calls or not all(type(t) is int for t in told):
        raise ImpossibleTimes(f"{name}: {calls} calls were asked for, and {_few(told)} was answered")
    return tuple(told)


def _few(told: object) -> str:
    text = str(list(told[:5]) if isinstance(told, list | tuple) else told)
    return text if len(text) <= 100 else f"{text[:100]}..."
