"""Interleaved timing of two workers that stay alive side by side, commanded block by block."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Protocol

from filelock import FileLock, Timeout

from egg.evaluation.timing.bystander import Bystander
from egg.evaluation.timing.figures import Block, ImpossibleTimes, Method, Timed, evaluate, read_block
from egg.evaluation.timing.interleave import Comparison, Pace, Schedule, block_order, plan_blocks
from egg.evaluation.timing.load import Load
from egg.evaluation.workers.activity import Activity
from egg.evaluation.workers.wire import Message

LOCK_WAIT_S = 120.0
_FAR_FASTER = 0.25
_VARIETIES = 2
"""Different inputs for each timed call, at least: about a fifth of the calls then repeat an earlier one."""
_SCALES = (0.8, 0.9, 1.1, 1.25)


@dataclass(frozen=True)
class TimedLeg:
    """One of the two workers: how to ask it, and how long its last answer took on the caller's clock."""

    name: str
    ask: Callable[..., Message]
    last_ask_s: Callable[[], float]
    activity: Callable[[], Activity] = Activity
    """What its processes do with the processor."""
    watched: bool = False
    """True where they are not trusted to keep still during the blocks of the other."""


class Proof(Protocol):
    """Sees to it that the outputs of timed calls were real. It decides in secret which blocks and calls it looks at."""

    def wants(self, pair: int, pairs: int) -> bool:
        """Returns whether the block of this pair will be looked at."""
        ...

    def examine(self, block: Block) -> None:
        """Looks at some calls of a block that has just ended. Raises where one was not real."""
        ...


class Conditions(Protocol):
    """The state of the device, as the caller reads it."""

    def trouble(self) -> str:
        """Returns why what was just timed should not count; empty where nothing speaks against it."""
        ...

    def wait(self) -> None:
        """Returns when the device may have recovered."""
        ...


class Undisturbed:
    """Conditions of a device that tells nothing."""

    def trouble(self) -> str:
        """Returns nothing."""
        return ""

    def wait(self) -> None:
        """Returns at once."""


@dataclass(frozen=True)
class Timer:
    """How two legs are timed."""

    pace: Pace
    method: Method
    random: Random
    left_s: Callable[[], float]
    hold_bytes: int
    """What the outputs of one block may take, which are held until some were looked at."""
    conditions: Conditions = field(default_factory=Undisturbed)


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


def time_legs(first: TimedLeg, second: TimedLeg, timer: Timer, proof: Proof | None = None) -> Timed:
    """Returns the comparison of two legs. The second is trusted: what surrounds a call is measured in it.

    Raises ImpossibleTimes, Restless, and what `proof` raises.
    """
    warmths = [_warm_up(leg, timer.pace) for leg in (first, second)]
    cycles_s = warmths[0].cycle_s, warmths[1].cycle_s
    session = _Session(first, second, timer, cycles_s, warmths[1].output_bytes, proof)
    load = Load([leg.activity for leg in (first, second)])
    session.run()
    others_pct = load.others_pct()
    session.bystander.judge()
    timed = evaluate(session.pairs, session.empty, timer.method, timer.random)
    if not timed.no_claim:
        timed = replace(timed, no_claim=_refused(timed.comparison, timer.pace, warmths[1]))
    timed = replace(timed, warm=warmths[0].stable, chained=warmths[1].chained, others_pct=others_pct)
    return timed.noted(session.discarded, session.trouble)


@dataclass(frozen=True)
class _Warmth:
    cycle_s: float
    output_bytes: int
    stable: bool
    chained: bool
    varieties: int


def _warm_up(leg: TimedLeg, pace: Pace) -> _Warmth:
    answer = leg.ask("warm_up", limit_s=pace.warm_up_limit_s, min_calls=pace.warm_up_calls, min_s=pace.warm_up_s)
    try:
        cycle_s, output_bytes = float(answer["cycle_s"]), int(answer["output_bytes"])
        if not 0 < cycle_s < float("inf"):
            raise ImpossibleTimes(f"{leg.name}: a call of {cycle_s} s")
        chained, varieties = answer["chained"] is True, int(answer["varieties"])
        return _Warmth(cycle_s, output_bytes, answer["stable"] is True, chained, varieties)
    except (KeyError, TypeError, ValueError) as error:
        raise ImpossibleTimes(f"{leg.name}: a warm-up without figures") from error


def _refused(found: Comparison, pace: Pace, told: _Warmth) -> str:
    """Returns why nothing may be claimed from figures as such; empty where something may. `told` is trusted."""
    if not told.chained:
        return "the inputs of this task can't change from call to call, so a kernel may have kept its answers"
    if told.varieties < _VARIETIES * found.first.calls:
        return (
            f"{found.first.calls} calls were timed on {told.varieties} different inputs, so a kernel may have kept "
            "many of its answers"
        )
    if found.pairs < pace.claim_pairs:
        return f"{found.pairs} pairs of blocks could be timed, and a claim needs {pace.claim_pairs}"
    return ""


class _Session:
    """The blocks of one comparison, in the order in which they are timed."""

    def __init__(
        self,
        first: TimedLeg,
        second: TimedLeg,
        timer: Timer,
        cycles_s: tuple[float, float],
        output_bytes: int,
        proof: Proof | None,
    ) -> None:
        self.pairs: list[tuple[Block, Block]] = []
        self.empty: list[Block] = []
        self.discarded = 0
        self.trouble = ""
        self.bystander = Bystander(first.activity if first.watched else Activity)
        self._legs = (first, second)
        self._timer = timer
        self._cycles_s = cycles_s
        self._most_calls = max(1, timer.hold_bytes // max(output_bytes, 1))
        self._schedule = self._planned()
        self._proof = proof
        self._factor = 1.0

    def run(self) -> None:
        """Times all pairs, and again those that conditions spoilt, half as many at most."""
        wanted = self._schedule.pairs
        for number, pair in enumerate(block_order(wanted + wanted // 2, self._timer.random)):
            blocks = self._pair(pair, number)
            if trouble := self._timer.conditions.trouble():
                self.discarded, self.trouble = self.discarded + 1, trouble
                self._timer.conditions.wait()
                continue
            self.pairs.append(blocks)
            if len(self.pairs) == wanted:
                return
            self._adapt(blocks)

    def _planned(self) -> Schedule:
        plan = plan_blocks(self._timer.pace, *self._cycles_s, max(self._timer.left_s(), 0.0))
        most = self._most_calls
        return Schedule(plan.pairs, min(plan.first_calls, most), min(plan.second_calls, most))

    def _adapt(self, blocks: tuple[Block, Block]) -> None:
        """Puts more calls into a block where they are far faster than in a warm-up that a candidate dragged out."""
        seen_s = [b.asked_s / b.calls for b in blocks]
        if any(now < _FAR_FASTER * then for now, then in zip(seen_s, self._cycles_s, strict=True)):
            self._cycles_s = min(self._cycles_s[0], seen_s[0]), min(self._cycles_s[1], seen_s[1])
            self._schedule = self._planned()

    def _pair(self, order: tuple[bool, bool], number: int) -> tuple[Block, Block]:
        """Times one block of each leg, both on the same inputs, and one in which nothing is called."""
        if number:
            self._refresh()
        found: dict[bool, Block] = {}
        for is_first in order:
            calls = self._schedule.first_calls if is_first else self._schedule.second_calls
            found[is_first] = self._timed(self._legs[not is_first], "block", calls)
            if is_first and self._proof is not None and self._proof.wants(number, self._schedule.pairs):
                self._proof.examine(found[True])
            self._legs[not is_first].ask("release")
        if self._timer.method == "caller":
            calls = (self._schedule.first_calls, self._schedule.second_calls)[number % 2]
            self.empty.append(self._timed(self._legs[1], "empty_block", calls))
            self._legs[1].ask("release")
        return found[True], found[False]

    def _timed(self, leg: TimedLeg, op: str, calls: int) -> Block:
        leg.ask("hand_over")
        link = self._timer.random.getrandbits(63)
        with self.bystander.watched(leg.last_ask_s) if leg is self._legs[1] else nullcontext():
            answer = leg.ask(op, calls=calls, link=link, hold=True)
        return read_block(leg.name, answer, calls, link, leg.last_ask_s(), op == "empty_block")

    def _refresh(self) -> None:
        """Gives both legs other inputs; the factor wanders about 1."""
        choices = [s for s in _SCALES if 0.25 <= self._factor * s <= 4]
        scale = self._timer.random.choice(choices)
        self._factor *= scale
        for leg in self._legs:
            leg.ask("scale", factor=scale)
