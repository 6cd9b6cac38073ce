"""What an evaluator is given besides the task: limits, clock, entropy, the lock of the host."""

from __future__ import annotations

import secrets
import tempfile
import time
from dataclasses import dataclass, field
from os import getuid
from pathlib import Path

from egg.evaluation.setting import Entropy
from egg.evaluation.tiers import Limits
from egg.protocols import Clock


def system_entropy() -> int:
    """Returns 32 bits from the operating system, which nobody can foresee."""
    return secrets.randbits(32)


def default_lock_path() -> Path:
    """Returns the file that all runs of one user lock while they time."""
    return Path(tempfile.gettempdir()) / f"egg-timing-{getuid()}.lock"


@dataclass(frozen=True)
class House:
    """The rules and means of one evaluator."""

    limits: Limits = field(default_factory=Limits)
    clock: Clock = time.monotonic
    entropy: Entropy = system_entropy
    lock_path: Path = field(default_factory=default_lock_path)
    audits: Path | None = None
    """Folder where verdicts of audits are kept between evaluators; None keeps none."""
    large: bool = False
    """True to try attested candidates past 2^31 elements too, where memory allows."""
    barred_ok: bool = False
    """True to evaluate candidates of a barred task all the same; each evaluation then says so."""
