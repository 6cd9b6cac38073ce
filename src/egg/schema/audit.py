"""Whether a task can tell a good kernel from a trivial one."""

from __future__ import annotations

from typing import Literal

from egg.schema.base import Record

Scorability = Literal["scorable", "redrawn", "barred"]
"""`redrawn`: scorable once inputs or weights are drawn anew within the task's domain; `barred`: never scored."""


class Probe(Record):
    """One trivial answer held against the task's own check."""

    name: str
    """`zeros`, `constant`, `row mean`, `passthrough`, `stored output`, `other weights`."""
    draws: str
    """How inputs and weights were drawn, such as `own`."""
    caught: bool
    """True where the check fails it, by the margin that is asked for."""
    excess: float | None = None
    """How far beyond the limit it is: 1 is just at it; None where the shape or dtype alone gave it away."""
    detail: str = ""


class Audit(Record):
    """The verdict about one task."""

    task: str
    suite: str | None = None
    content_hash: str
    policy: str
    verdict: Scorability
    reason: str
    """One sentence: which trivial answer passes where, or that none does."""
    probes: tuple[Probe, ...] = ()
    known_defect: str | None = None
    """What the shipped list of flawed tasks says about it, with its source."""
    wall_s: float = 0.0
