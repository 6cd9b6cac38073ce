"""Linux calls that Python has no function for, each raising OSError with what was asked."""

from __future__ import annotations

import ctypes
import os
import platform
from typing import Any

PR_SET_PDEATHSIG = 1
PR_GET_DUMPABLE, PR_SET_DUMPABLE = 3, 4
PR_CAPBSET_READ, PR_CAPBSET_DROP = 23, 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS = 38, 39


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, asked: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{asked}: {os.strerror(number)}")
    return result


def prctl(option: int, value: int = 0) -> int:
    """Returns what the kernel answers to one option of this process."""
    return _checked(_libc().prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl({option}, {value})")


def syscall(number: int, name: str, *arguments: Any) -> int:
    """Returns the result of a system call by its number; `name` is for the error."""
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _checked(_libc().syscall(ctypes.c_long(number), *wide), name)


def unshare(flags: int) -> None:
    """Moves this process (for processes: its children) into new namespaces."""
    _checked(_libc().unshare(flags), f"unshare({flags:#x})")


def setns(fd: int, kind: int) -> None:
    """Moves this process (for processes: its children) into the namespace behind a descriptor."""
    _checked(_libc().setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Mounts a file system, in the mount namespace of this process."""
    encoded = [text.encode() if text is not None else None for text in (source, target, kind, options)]
    result = _libc().mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    _checked(result, f"mount({target})")


def machine() -> str:
    """Returns the name of the processor architecture, such as `x86_64`."""
    return platform.machine()


def why(error: OSError) -> str:
    """Returns the reason of a failed call in a few words."""
    return error.strerror or str(error)
