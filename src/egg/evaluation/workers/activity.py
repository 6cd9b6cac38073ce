"""What a process and all that it started do with the processor, as the kernel accounts it: they have no say in it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from egg.evaluation.workers.processes import stat_of

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_STATE, _CHILDREN_USER, _CHILDREN_SYSTEM = 0, 13, 14
"""Places in `/proc/PID/stat` behind the name."""


@dataclass(frozen=True)
class Activity:
    """A family of processes at one moment."""

    own_s: dict[int, float] = field(default_factory=dict[int, float])
    """Processor seconds of each process so far."""
    reaped_s: dict[int, float] = field(default_factory=dict[int, float])
    """The same of its children that have ended and were waited for."""
    runnable: bool = False
    """True where a thread of any runs, or would if a processor were free."""

    def since(self, before: Activity) -> float:
        """Returns the processor seconds that the family took since an earlier moment."""
        alive = sum(max(0.0, now - before.own_s.get(pid, 0.0)) for pid, now in self.own_s.items())
        ended = [pid for pid in before.own_s if pid not in self.own_s]
        known = sum(before.own_s[pid] + before.reaped_s[pid] for pid in ended)
        reaped = sum(now - before.reaped_s.get(pid, 0.0) for pid, now in self.reaped_s.items())
        return alive + max(0.0, reaped - known)


def activity(roots: Iterable[int]) -> Activity:
    """Returns what these processes and their descendants do; one that has gone is left out."""
    own_s: dict[int, float] = {}
    reaped_s: dict[int, float] = {}
    runnable = False
    todo = list(roots)
    while todo:
        pid = todo.pop()
        try:
            fields = stat_of(Path("/proc", str(pid)))
            own_s[pid] = time.clock_gettime(_clock_id(pid))
        except OSError:
            continue
        reaped_s[pid] = _TICK_S * (int(fields[_CHILDREN_USER]) + int(fields[_CHILDREN_SYSTEM]))
        for thread in _threads(pid):
            runnable = runnable or _runs(thread)
            todo += _children(thread)
    return Activity(own_s, reaped_s, runnable)


def children(pid: int) -> list[int]:
    """Returns the children of a process; none where it has gone."""
    return [child for thread in _threads(pid) for child in _children(thread)]


def _clock_id(pid: int) -> int:
    """Returns the kernel's name of the clock of all threads of a process, those that have ended among them."""
    return (~pid << 3) | 2


def _threads(pid: int) -> list[Path]:
    try:
        return [Path("/proc", str(pid), "task", name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _runs(thread: Path) -> bool:
    try:
        return stat_of(thread)[_STATE] == "R"
    except OSError:
        return False


def _children(thread: Path) -> list[int]:
    try:
        return [int(child) for child in (thread / "children").read_text().split()]
    except OSError:
        return []
