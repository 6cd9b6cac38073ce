"""Landlock: an allow-list of files that a process and its descendants can't leave.

The numbers are those of the kernel's `uapi/linux/landlock.h`. They are the same on every architecture.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from egg.evaluation.workers import kernel

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << bit for bit in range(6))
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2
_NET_TCP = 3
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

READ = EXECUTE | READ_FILE | READ_DIR
OWN = READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE
"""What a process may do in folders of its own. No device nodes."""
EXCHANGE = READ_FILE | READ_DIR | WRITE_FILE | MAKE_REG | REMOVE_FILE | TRUNCATE
"""Plain files only: no link, pipe or folder that would lead a reader elsewhere."""
DEVICE = READ_FILE | READ_DIR | WRITE_FILE | IOCTL_DEV
CHANGE = READ | WRITE_FILE | TRUNCATE
"""Read, and write what is there."""


@dataclass(frozen=True)
class Rule:
    """What may be done beneath a path."""

    path: str
    access: int


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("fd", ctypes.c_int32))


def version() -> int:
    """Returns the version of the kernel's interface. Raises OSError where there is none."""
    return kernel.syscall(_CREATE_RULESET, "landlock", None, 0, _VERSION_FLAG)


def restrict(rules: Iterable[Rule]) -> int:
    """Restricts this thread, for good, to the rules; returns the version. Raises OSError.

    Needs `no_new_privs`. A path that does not exist is left out. From version 6 on, signals and abstract sockets end at
    the restricted processes too; from version 4 on, TCP is denied.
    """
    found = version()
    handled = (1 << (13 if found < 2 else 14 if found < 3 else 15 if found < 5 else 16)) - 1
    ruleset = _Ruleset(handled, _NET_TCP if found >= 4 else 0, 3 if found >= 6 else 0)
    size = 8 if found < 4 else 16 if found < 6 else 24
    fd = kernel.syscall(_CREATE_RULESET, "landlock_create_ruleset", ctypes.byref(ruleset), size, 0)
    try:
        for rule in rules:
            _allow(fd, rule, handled)
        kernel.syscall(_RESTRICT_SELF, "landlock_restrict_self", fd, 0)
    finally:
        os.close(fd)
    return found


def _allow(ruleset: int, rule: Rule, handled: int) -> None:
    try:
        fd = os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # absent here, or out of reach already: then there is nothing to allow
        return
    try:
        access = rule.access & handled
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            access &= _OF_FILES
        beneath = _PathBeneath(access, fd)
        name = f"landlock_add_rule({rule.path})"
        kernel.syscall(_ADD_RULE, name, ruleset, _PATH_BENEATH, ctypes.byref(beneath), 0)
    finally:
        os.close(fd)
