"""The statistics of interleaved timing: order of blocks, calls in a block, ratio with its interval. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from random import Random
from statistics import median

RESAMPLES = 1000


@dataclass(frozen=True)
class Pace:
    """How long a tier times."""

    pairs: int
    least_pairs: int
    """Timed even where no time is left."""
    claim_pairs: int
    """Fewer claim nothing; timed past the budget where the allowance permits."""
    block_s: float
    """Least length of a block."""
    longest_block_s: float
    """A block of slow calls is cut to this, but never below one call."""
    block_calls: int
    """Least calls in a block, as far as the longest block allows."""
    budget_s: float
    """What all blocks together may take, as far as the least number of pairs allows."""
    warm_up_s: float
    warm_up_limit_s: float
    warm_up_calls: int


@dataclass(frozen=True)
class Schedule:
    """What is timed: pairs of blocks, and calls in a block of each leg."""

    pairs: int
    first_calls: int
    second_calls: int


@dataclass(frozen=True)
class Leg:
    """The times of one leg, in milliseconds."""

    p10_ms: float
    median_ms: float
    p90_ms: float
    calls: int


@dataclass(frozen=True)
class Comparison:
    """Two legs and the time of the second over that of the first: above 1, the first is faster."""

    first: Leg
    second: Leg
    ratio: float
    low: float
    high: float
    pairs: int

    @property
    def spread(self) -> float:
        """Width of the interval over the ratio."""
        return (self.high - self.low) / self.ratio


def plan_blocks(pace: Pace, first_s: float, second_s: float, left_s: float) -> Schedule:
    """Returns how many pairs and calls fit, from the seconds of one call of each leg and the seconds left."""
    budget_s = min(pace.budget_s, left_s)
    calls = _calls(pace, first_s), _calls(pace, second_s)
    if pace.claim_pairs * (calls[0] * first_s + calls[1] * second_s) > budget_s:
        calls = _fewest(pace, first_s), _fewest(pace, second_s)
    pair_s = calls[0] * first_s + calls[1] * second_s
    affordable = [int(seconds / max(pair_s, 1e-9)) for seconds in (budget_s, left_s)]
    pairs = max(pace.least_pairs, min(pace.pairs, affordable[0]), min(pace.claim_pairs, affordable[1]))
    return Schedule(pairs, *calls)


def _calls(pace: Pace, call_s: float) -> int:
    wanted = max(pace.block_calls, ceil(pace.block_s / max(call_s, 1e-9)))
    return max(1, min(wanted, int(pace.longest_block_s / max(call_s, 1e-9))))


def _fewest(pace: Pace, call_s: float) -> int:
    return max(1, min(_calls(pace, call_s), ceil(pace.block_s / max(call_s, 1e-9))))


def block_order(pairs: int, random: Random) -> list[tuple[bool, bool]]:
    """Returns, for each pair, whether each of its two blocks is of the first leg: A B B A in random turns."""
    order: list[tuple[bool, bool]] = []
    while len(order) < pairs:
        leads = random.random() < 0.5
        order += [(leads, not leads), (not leads, leads)]
    return order[:pairs]


def compare(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]], random: Random) -> Comparison:
    """Returns the comparison of two legs from the nanoseconds of each call, block by block, paired by position."""
    ratios = [median(b) / median(a) for a, b in zip(first, second, strict=True)]
    resampled = sorted(median(random.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    low, high = _quantile(resampled, 0.025), _quantile(resampled, 0.975)
    return Comparison(_leg(first), _leg(second), median(ratios), low, high, len(ratios))


def _leg(blocks: Sequence[Sequence[int]]) -> Leg:
    times = sorted(t for block in blocks for t in block)
    p10, p90 = _quantile(times, 0.1) / 1e6, _quantile(times, 0.9) / 1e6
    return Leg(p10, median(times) / 1e6, p90, len(times))


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
