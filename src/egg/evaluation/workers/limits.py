"""Limits of one process: privileges, core dumps, memory, files, processes."""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from egg.evaluation.workers import kernel

_CAPSET, _CAPABILITY_VERSION = {"x86_64": 126, "aarch64": 91}, 0x20080522
_MOST_OPEN_FILES = 4096
_FIRST_VICTIM = 1000


@dataclass(frozen=True)
class Quota:
    """What one candidate may use of the machine."""

    memory_bytes: int | None = None
    """Private memory of one process; None for no limit."""
    file_bytes: int = 64 * 2**30
    """Length of one file."""
    processes: int = 1024
    """Processes and threads together: OpenMP teams, compilers, their assemblers."""


def apply(quota: Quota) -> None:
    """Sets the limits of this process and of all that it starts."""
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, _MOST_OPEN_FILES)]
    limits += [(resource.RLIMIT_FSIZE, quota.file_bytes), (resource.RLIMIT_NPROC, quota.processes)]
    if quota.memory_bytes is not None:
        limits.append((resource.RLIMIT_DATA, quota.memory_bytes))
    for kind, value in limits:
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    # Where memory ends, the kernel should end this process, not the caller.
    Path("/proc/self/oom_score_adj").write_text(str(_FIRST_VICTIM))


def drop_privileges() -> None:
    """Gives up every capability, and gaining any by starting a program. Raises OSError."""
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(64):
        try:
            if kernel.prctl(kernel.PR_CAPBSET_READ, capability):
                kernel.prctl(kernel.PR_CAPBSET_DROP, capability)
        except OSError:  # past the last one of this kernel, or not ours to drop: without privileges it is empty anyway
            break
    number = _CAPSET.get(kernel.machine())
    if number is None:
        raise OSError(0, f"no system call numbers for {kernel.machine()}")
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    kernel.syscall(number, "capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def hide_memory() -> None:
    """Keeps processes of the same user from reading or tracing this one. Raises OSError."""
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)


@contextmanager
def shown_to_drivers(target: str) -> Generator[None]:
    """Shows the memory of this process while a device is opened, before any candidate code runs.

    CUDA names its threads by files in /proc, which belong to root while memory is hidden, and does not start without.
    """
    if target == "cpu" or os.geteuid() == 0:
        yield
        return
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    try:
        yield
    finally:
        hide_memory()


def has_capabilities() -> bool:
    """Returns whether this process holds any capability."""
    lines = Path("/proc/self/status").read_text().splitlines()
    held = [line.split()[1] for line in lines if line.startswith(("CapPrm:", "CapEff:"))]
    return any(int(mask, 16) for mask in held)
