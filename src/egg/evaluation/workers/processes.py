"""Linux facts about processes: who descends from whom, and a few `prctl` calls."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

from egg.evaluation.workers import kernel

_UVM = "nvidia-uvm"
"""The device file that CUDA holds open from its start on; a library that only asks for GPUs does not."""
_ARGUMENTS = 45
"""Place in `/proc/PID/stat` behind the name: where the command line begins in memory, and behind it where it ends."""


def die_with_parent() -> None:
    """Has the kernel kill this process when the thread that started it ends."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant that loses its own."""
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)


def stat_of(folder: Path) -> list[str]:
    """Returns the fields behind the name in the `stat` of a process or thread. Raises OSError where it has gone."""
    return (folder / "stat").read_text().rpartition(")")[2].split()


def parent_by_pid() -> dict[int, int]:
    """Returns the parent of every process that can be read now."""
    found: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                found[int(entry)] = int(stat_of(Path("/proc", entry))[1])
            except OSError:  # it ended meanwhile
                continue
    return found


def descendants(root: int, spared: frozenset[int] = frozenset()) -> list[int]:
    """Returns all descendants of `root`, without the `spared` processes and theirs."""
    children: dict[int, list[int]] = {}
    for pid, parent in parent_by_pid().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    todo = [root]
    while todo:
        for child in children.get(todo.pop(), []):
            if child not in spared:
                found.append(child)
                todo.append(child)
    return found


def send_signal(pid: int, number: int, group: bool = False) -> None:
    """Signals a process or its group; one that has gone is no error."""
    try:
        if group:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def hide_arguments() -> None:
    """Writes over the command line of this process in memory, from where the system shows it."""
    fields = stat_of(Path("/proc/self"))
    first, behind = int(fields[_ARGUMENTS]), int(fields[_ARGUMENTS + 1])
    if 0 < first < behind:
        ctypes.memset(first, 0, behind - first)


def thread_count() -> int:
    """Returns the number of threads of this process."""
    return len(os.listdir("/proc/self/task"))


def drives_gpu() -> bool:
    """Returns whether this process has started the driver of a GPU, so that a fork of it could not use one."""
    return any(os.path.basename(_target(fd)).startswith(_UVM) for fd in os.listdir("/proc/self/fd"))


def _target(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:  # the folder that is being listed has a descriptor too
        return ""


def oom_kills() -> int:
    """Returns how many processes the kernel has killed for memory since it started; 0 where that can't be read."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
