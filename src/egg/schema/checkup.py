"""What a machine offers for making and measuring kernels."""

from __future__ import annotations

from typing import Literal

from egg.schema.base import Record

State = Literal["ok", "missing", "unknown"]
"""`missing`: it is not there, or does not do what it has to; `unknown`: the machine does not tell, or was too noisy."""


class Finding(Record):
    """One line of a check-up."""

    group: str
    """`toolchain`, `device`, `measured`, `self-test`, `isolation`."""
    name: str
    state: State
    said: str
    """What was found: a version, a figure with its unit, or why it is not known."""
    costs: str = ""
    """What can't be done, or is less certain, without it."""
    fix: str = ""
    """What to do about it."""
    needed: bool = False
    """True where EGG can't do its work on this machine without it."""


class Checkup(Record):
    """All that was looked at, in order."""

    findings: tuple[Finding, ...]
    versions: dict[str, str]
    wall_s: float

    @property
    def fit(self) -> bool:
        """True where nothing is missing that EGG can't do without."""
        return not any(f.needed and f.state == "missing" for f in self.findings)
