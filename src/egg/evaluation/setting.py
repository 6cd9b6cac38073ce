"""What an examination rests on, and what it has seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from egg.evaluation.tiers import Limits, TierPlan
from egg.evaluation.timing.legs import Conditions, Timer, Undisturbed
from egg.schema.evaluation import KernelShare, Timing, Trial
from egg.schema.task import Policy, Task

Entropy = Callable[[], int]


@dataclass
class Notes:
    """What an examination has seen so far."""

    trials: list[Trial] = field(default_factory=list[Trial])
    timings: list[Timing] = field(default_factory=list[Timing])
    findings: list[str] = field(default_factory=list[str])
    skipped: list[str] = field(default_factory=list[str])
    profile: dict[str, float] = field(default_factory=dict[str, float])
    kernels: tuple[KernelShare, ...] = ()
    environment: dict[str, str] = field(default_factory=dict[str, str])

    def find(self, finding: str) -> None:
        """Adds a finding once."""
        if finding not in self.findings:
            self.findings.append(finding)


@dataclass(frozen=True)
class Setting:
    """What an examination rests on besides its two workers."""

    task: Task
    policy: Policy
    plan: TierPlan
    limits: Limits
    folder: Path
    """Where tensors travel; emptied after each trial."""
    lock_path: Path
    entropy: Entropy
    left_s: Callable[[], float]
    target: str = "cpu"
    conditions: Conditions = field(default_factory=Undisturbed)
    settle: Callable[[], None] = lambda: None
    """Returns once nothing else starts on the device."""

    def timer(self) -> Timer:
        """Returns how legs are timed, in an order of blocks that nobody can foresee."""
        hold_bytes = self.limits.hold_on(self.target)
        return Timer(self.plan.pace, self.plan.method, Random(self.entropy()), self.left_s, hold_bytes, self.conditions)
