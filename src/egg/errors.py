"""What can go wrong in the house. A candidate that fails is data, never an exception.

EggError
├── UsageError      the caller asked for something that can't be; names the value and the fix
├── TaskError       the task can't be loaded, exported or run; names file, line and cause
├── ModelError      a language model provider failed
├── SandboxError    a worker, a device or the toolchain was lost; never blamed on the candidate
└── ArchiveError    a run folder can't be read or written
"""

from __future__ import annotations


class EggError(Exception):
    """The base of all errors that the house raises on purpose."""

    exit_status = 3
    """What the command line returns for it."""


class UsageError(EggError):
    """The caller asked for something that can't be. The message names the value and the fix."""

    exit_status = 2


class TaskError(EggError):
    """The task can't be loaded, exported or run. The message names file, line and cause."""

    exit_status = 2


class ModelError(EggError):
    """A language model provider failed."""


class SandboxError(EggError):
    """A worker, a device or the toolchain was lost. Never blamed on the candidate."""


class ArchiveError(EggError):
    """A run folder can't be read or written."""
