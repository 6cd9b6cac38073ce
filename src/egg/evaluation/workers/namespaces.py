"""Namespaces: a candidate sees no process, no network, no shared memory but its own.

The nursery starts each candidate in a new process namespace, of which it is the first process: the kernel ends the
whole tree with it. The candidate's bootstrap moves on into the others. All need either privileges or a user namespace.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from egg.evaluation.workers import kernel

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_NOSUID, _NODEV, _NOEXEC, _REC, _PRIVATE = 0x2, 0x4, 0x8, 0x4000, 0x40000
KINDS = {"user": "user", "process": "pid", "network": "net", "ipc": "ipc", "mount": "mnt"}
"""The namespaces by our name and by the kernel's."""
_SHARED_MEMORY_BYTES = 2**30


def identities() -> dict[str, str]:
    """Returns what tells the namespaces of this process from others, by our names."""
    return {name: os.readlink(f"/proc/self/ns/{kind}") for name, kind in KINDS.items()}


def own_user() -> None:
    """Moves this process into a user namespace in which it is the same user, with every capability. Raises OSError."""
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


class ProcessNamespaces:
    """Gives each started process a process namespace of its own, where this machine allows it."""

    def __init__(self) -> None:
        self.refused = ""
        """Why it can't; empty where it can."""
        try:
            self._own: int | None = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            self._try()
        except OSError as error:
            self.refused = kernel.why(error)

    def _try(self) -> None:
        try:
            with self.entered():
                pass
        except PermissionError:
            own_user()
            with self.entered():
                pass

    @contextmanager
    def entered(self) -> Generator[None]:
        """Starts the next child of this process in a new namespace, as its first process."""
        if self.refused or self._own is None:
            yield
            return
        kernel.unshare(_NEWPID)
        keeper = os.getpid()
        try:
            yield
        finally:
            if os.getpid() == keeper:  # not the child, which leaves this by an exception
                kernel.setns(self._own, _NEWPID)

    def close(self) -> None:
        """Lets go of what a child has no use for."""
        if self._own is not None:
            os.close(self._own)
            self._own = None


def separate(processes: int) -> dict[str, str]:
    """Moves this process into namespaces of its own; returns why not, by layer, for those that it did not get.

    To be called by a process with one thread, the first of its process namespace where it has one, in which at most
    `processes` may then live. The namespaces belong to the user namespace that it leaves last, so what it may do in its
    own gives it no power over them.
    """
    refused: dict[str, str] = {}
    for name, flag in (("mount", _NEWNS), ("network", _NEWNET), ("ipc", _NEWIPC)):
        try:
            kernel.unshare(flag)
        except OSError as error:
            refused[name] = kernel.why(error)
    if "mount" not in refused:
        refused |= _private_mounts(processes)
    try:
        own_user()
    except OSError as error:
        refused["user"] = kernel.why(error)
    return refused


def _private_mounts(processes: int) -> dict[str, str]:
    """Mounts a /proc that shows this process namespace alone, and shared memory of its own; bounds the processes."""
    refused: dict[str, str] = {}
    safe = _NOSUID | _NODEV | _NOEXEC
    try:
        kernel.mount("none", "/", None, _REC | _PRIVATE)
        kernel.mount("tmpfs", "/dev/shm", "tmpfs", safe, f"size={_SHARED_MEMORY_BYTES},mode=1777")
    except OSError as error:
        refused["private shared memory"] = kernel.why(error)
    if os.getpid() != 1:
        return {**refused, "private /proc": "no process namespace", "process limit": "no process namespace"}
    try:
        kernel.mount("proc", "/proc", "proc", safe)
    except OSError as error:
        return {**refused, "private /proc": kernel.why(error), "process limit": "no private /proc"}
    try:
        # Per process namespace since Linux 6.14, and unlike RLIMIT_NPROC it binds root too.
        Path("/proc/sys/kernel/pid_max").write_text(str(processes))
    except OSError as error:
        refused["process limit"] = kernel.why(error)
    return refused
