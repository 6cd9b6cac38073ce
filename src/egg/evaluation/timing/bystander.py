"""Whether the first leg keeps still while the second is timed: who works then slows what it is held against."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from egg.evaluation.workers.activity import Activity

SHARE = 0.05
"""Of a block's length, what the other leg's processes may take of a processor meanwhile."""
SLACK_S = 0.0002
"""What waking up for nothing may take besides."""
MANY = 0.25
"""Of the blocks, more than which are no accident."""
REST_S = 0.1
"""How long threads may go on after a call: those of OpenMP spin, and longer on a busy machine."""
_LOOK_S = 0.001


class Restless(Exception):
    """The candidate worked while the reference was timed."""


class Bystander:
    """Watches the processes of one leg during the blocks of the other. Nothing of what these say counts."""

    def __init__(self, read: Callable[[], Activity], sleep: Callable[[float], None] = time.sleep) -> None:
        self._read = read
        self._sleep = sleep
        self._shares: list[float] = []
        self._over = 0
        self._unrest = 0

    @contextmanager
    def watched(self, length_s: Callable[[], float]) -> Generator[None]:
        """Lets the processes come to rest, and sees what they do until the block that is timed here has ended."""
        before = self._rested()
        yield
        spent_s, block_s = self._read().since(before), length_s()
        self._shares.append(spent_s / block_s)
        self._over += spent_s > SHARE * block_s + SLACK_S

    def judge(self) -> None:
        """Raises Restless where the processes worked in too many of the blocks."""
        if self._over > MANY * len(self._shares):
            share = sorted(self._shares)[len(self._shares) // 2]
            raise Restless(
                f"the candidate worked while the reference was timed, in {self._over} of {len(self._shares)} blocks: "
                f"its processes took {100 * share:.3g} % of a processor; "
                "end threads and processes, or let them sleep, before a call returns"
            )

    def _rested(self) -> Activity:
        """Returns what the processes do once none is runnable; what never rests is not waited for again and again."""
        looks = 0 if self._unrest > 1 else round(REST_S / _LOOK_S)
        now = self._read()
        for _ in range(looks):
            if not now.runnable:
                return now
            self._sleep(_LOOK_S)
            now = self._read()
        self._unrest += 1
        return now
