"""The whole machine on one page.

    task -> analysis -> stage plan -> candidate -> evaluation -> attempt (archive) -> report / export
                            ^                                       |
                            +---------- attempts so far ------------+

`engine.py` knows these Protocols and the records, nothing else, so it runs whole with fakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from egg.schema.analysis import Analysis
from egg.schema.candidate import Candidate
from egg.schema.device import Device
from egg.schema.evaluation import Baseline, Evaluation, Tier
from egg.schema.plan import Option, StagePlan
from egg.schema.run import Diagnosis, Event, Outcome, RunState, Verdict
from egg.schema.task import Task

OptionsOf = Callable[[Candidate], Sequence[Option]]
"""The steps that can be taken from a candidate; pure, so it may be asked again."""


class Analyst(Protocol):
    """Turns a task into its operator graph with costs."""

    def analyze(self, task: Task, device: Device) -> tuple[Analysis, ...]:
        """Returns one analysis a workload, in order. Raises TaskError where the task can't be exported."""
        ...


class Planner(Protocol):
    """Decides the next step from what is recorded. Pure: the same state gives the same plan."""

    def next(self, state: RunState, options_of: OptionsOf) -> StagePlan | None:
        """Returns the next plan, or None when the search is over (nothing left to try, or the budget is spent)."""
        ...

    def repair(self, state: RunState) -> StagePlan | None:
        """Returns the plan to repair the last attempt under, or None where it needs none, or may have none."""
        ...

    def judge(self, state: RunState, plan: StagePlan, evaluation: Evaluation) -> tuple[Verdict, str]:
        """Returns the verdict for the outcome of a plan, and the reason in one sentence."""
        ...

    def finalists(self, state: RunState) -> tuple[str, ...]:
        """Returns the ids of the candidates to measure again in fresh processes, best first, the reference last."""
        ...

    def outcome(self, state: RunState, interrupted: bool) -> Outcome:
        """Returns how the run ended, from the final measurements alone."""
        ...


class CodeAgent(Protocol):
    """Writes candidates."""

    name: str

    def reference(self, task: Task, analyses: Sequence[Analysis]) -> Candidate:
        """Returns the task itself as a candidate: attempt 0 of every run."""
        ...

    def options(self, task: Task, analyses: Sequence[Analysis], parent: Candidate) -> tuple[Option, ...]:
        """Returns the steps that can be taken from `parent`, structure and schedule alike. Pure."""
        ...

    def write(self, task: Task, analyses: Sequence[Analysis], parent: Candidate, plan: StagePlan) -> Candidate:
        """Returns the candidate that `plan` asks for. Pure for the built-in author."""
        ...


class ProfileAgent(Protocol):
    """Reads measurements and names the bottleneck."""

    def diagnose(self, analyses: Sequence[Analysis], device: Device, evaluation: Evaluation) -> Diagnosis:
        """Returns what binds the candidate, from what was measured."""
        ...


class DebugAgent(Protocol):
    """Repairs what fails, or steps back."""

    def repair(
        self, task: Task, analyses: Sequence[Analysis], failed: Candidate, evaluation: Evaluation, plan: StagePlan
    ) -> Candidate | None:
        """Returns the smallest step back that may pass; None when the parent is the answer."""
        ...


class Evaluator(Protocol):
    """Runs candidates and the reference apart, in worker processes. Knows no stage."""

    def baseline(self, name: str) -> Baseline:
        """Returns one rung of the ladder. An unavailable rung is data. Raises SandboxError when the house fails."""
        ...

    def evaluate(self, candidate: Candidate, tier: Tier, allowance_s: float) -> Evaluation:
        """Returns what was seen. Raises SandboxError when the house fails, never for the candidate's faults."""
        ...

    def close(self) -> None:
        """Ends every worker."""
        ...


class Archive(Protocol):
    """The append-only log of one run and its sources by content hash."""

    def append(self, event: Event) -> None:
        """Stores one event durably before it returns. Raises ArchiveError."""
        ...

    def events(self) -> Iterable[Event]:
        """Yields the stored events in order; a torn last record is set aside, never an error."""
        ...


class Listener(Protocol):
    """Watches a run. The terminal is one; a test's list is another."""

    def on_plan(self, state: RunState, plan: StagePlan) -> None:
        """A plan is about to be carried out."""
        ...

    def on_event(self, state: RunState, event: Event) -> None:
        """An event was stored; `state` includes it."""
        ...


class Clock(Protocol):
    """Monotonic seconds."""

    def __call__(self) -> float:
        """Returns seconds since an arbitrary start."""
        ...


@dataclass(frozen=True)
class Machine:
    """All the parts of one run, composed once by the caller."""

    analyst: Analyst
    planner: Planner
    code: CodeAgent
    profile: ProfileAgent
    debug: DebugAgent
    evaluator: Evaluator
    archive: Archive
    clock: Clock
    listeners: Sequence[Listener] = ()
