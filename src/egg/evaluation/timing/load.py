"""What others on this machine take of its processors while calls are timed: no part of a ratio, but of each time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from egg.evaluation.workers.activity import Activity

LEAST_S = 0.2
"""Shorter stretches say nothing, as the kernel counts the processors' time in hundredths of a second."""
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_USER, _NICE, _SYSTEM, _IRQ, _SOFT_IRQ, _STOLEN = 0, 1, 2, 5, 6, 7
"""Places in the lines of `/proc/stat` behind the name; guests are within the time of users."""


@dataclass(frozen=True)
class Processors:
    """The processors of a machine at one moment."""

    count: int
    busy_s: float
    """Seconds that all of them together have worked so far, or were taken by other machines of the same host."""


def processors(path: Path = Path("/proc/stat")) -> Processors | None:
    """Returns what the processors have done since the machine started; None where it is not told."""
    try:
        lines = [line.split() for line in path.read_text().splitlines() if line.startswith("cpu")]
        told = [int(field) for field in lines[0][1:]]
        busy = sum(told[place] for place in (_USER, _NICE, _SYSTEM, _IRQ, _SOFT_IRQ, _STOLEN))
    except (OSError, ValueError, IndexError):
        return None
    return Processors(len(lines) - 1, _TICK_S * busy) if len(lines) > 1 else None


class Load:
    """The load of others from its making on."""

    def __init__(
        self,
        families: Sequence[Callable[[], Activity]],
        machine: Callable[[], Processors | None] = processors,
        own_s: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._families = families
        self._machine = machine
        self._own_s = own_s
        self._clock = clock
        self._before = machine(), [read() for read in families], own_s(), clock()

    def others_pct(self) -> float | None:
        """Returns the share of all processors that neither the families nor this process took, in percent.

        None where the machine does not tell, or too little time has passed.
        """
        machine, families, own_s, began_s = self._before
        passed_s, now = self._clock() - began_s, self._machine()
        if machine is None or now is None or passed_s < LEAST_S:
            return None
        ours_s = sum(read().since(before) for read, before in zip(self._families, families, strict=True))
        others_s = now.busy_s - machine.busy_s - ours_s - (self._own_s() - own_s)
        return max(0.0, 100 * others_s / (passed_s * now.count))
