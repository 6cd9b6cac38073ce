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
    variant: str = ""
    """Which input or axis: `args[0]`, `axis 1`."""
    workload: str = "default"
    draws: str
    """How inputs and weights were drawn, such as `own`."""
    caught: bool
    """True where the check fails it, by the margin that is asked for."""
    excess: float | None = None
    """How far beyond the limit it is: 1 is just at it; None where shape, dtype or a discrete value gave it away."""
    same: bool = False
    """True where it equals what the reference gave, bit for bit but for the sign of zero."""
    counts: bool = True
    """False where it passes and is no flaw: the output repeats along that axis, or no weight reaches it."""
    detail: str = ""

    @property
    def answer(self) -> str:
        """Name and variant in a few words."""
        return f"{self.name} ({self.variant})" if self.variant else self.name


class Audit(Record):
    """The verdict about one task."""

    task: str
    suite: str | None = None
    content_hash: str
    policy: str
    verdict: Scorability
    reason: str
    """One sentence: which trivial answer passes where, or that none does."""
    counting: tuple[str, ...] = ()
    """Draws under which a candidate has to be checked, so that no trivial answer passes."""
    probes: tuple[Probe, ...] = ()
    known_defect: str | None = None
    """What the shipped list of flawed tasks says about it, with its source."""
    wall_s: float = 0.0


class AuditOutcome(Record):
    """What came of the audit of one task among many."""

    name: str
    """`level1/19_ReLU` for a task of a suite."""
    text_hash: str
    """`content_hash` of the task's file; empty where there is none."""
    audit: Audit | None = None
    fault: Literal["task", "memory", "timeout", "house"] | None = None
    """Why there is no verdict: the task fails or does not fit, takes too long, or EGG itself failed."""
    message: str = ""
    device: str = "cpu"
    wall_s: float
    """Seconds with the start of the process."""


class KnownDefect(Record):
    """The flaws of one task of a public suite, found by someone before."""

    suite: str
    level: int
    number: int
    file: str
    """Name of the task's file."""
    version: str = "main"
    """Newest version of the suite that has the flaw."""
    sha256: str | None = None
    """`content_hash` of the text that has the flaw, where that is known."""
    repaired: str | None = None
    """`content_hash` of the text without it, where there is one."""
    defect: str
    """What is wrong, in a few words."""
    source: str
    """Who found it: an issue, a report, an own run."""
    action: str
    """What an evaluator does about it."""
