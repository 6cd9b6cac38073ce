"""A run: its configuration, its attempts, its events, its outcome."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from egg.schema.analysis import Analysis
from egg.schema.base import Record
from egg.schema.candidate import Candidate
from egg.schema.device import Device
from egg.schema.evaluation import Baseline, Evaluation
from egg.schema.plan import StagePlan
from egg.schema.task import Policy, Task

SCHEMA_VERSION = 1


class Config(Record):
    """What a run was asked to do, resolved once."""

    target: Literal["cpu", "cuda"] = "cpu"
    author: str = "expert"
    policy: Policy = "strict"
    budget_s: float | None = 60.0
    """Wall seconds for baselines, search and final measurement together; None for no limit."""
    budget_attempts: int | None = None
    """Attempts at most; None for no limit."""
    seed: int = 0
    threads: int
    """Threads that candidate and baselines may use."""
    ladder: tuple[str, ...] = ("eager", "torch.compile")
    beam: int = 2
    """Structures that go on into tuning."""
    explore_share: float = 0.1
    """Share of the attempts that ignores the priors."""


class Diagnosis(Record):
    """What the profile agent read from a measurement."""

    bottleneck: Literal["memory", "compute", "launch", "library", "correctness", "build", "none"]
    summary: str
    """One sentence."""
    evidence: dict[str, float] = Field(default_factory=dict)


Verdict = Literal["accepted", "kept", "rejected", "failed"]
"""accepted: the new best; kept: no better, but goes on as a second structure; rejected: no gain; failed: not PASSED."""


class Usage(Record):
    """What an attempt cost."""

    wall_s: float = 0.0
    model_calls: int = 0
    tokens: int = 0
    usd: float = 0.0


class Attempt(Record):
    """One step with its prediction and its outcome."""

    plan: StagePlan
    candidate: Candidate
    evaluation: Evaluation
    diagnosis: Diagnosis
    verdict: Verdict
    reason: str
    repaired_from: str | None = None
    """Id of the failed candidate that this one repairs."""
    usage: Usage = Usage()

    @property
    def effect(self) -> float | None:
        """Measured speedup over the reference."""
        return self.evaluation.speedup


class Outcome(Record):
    """How the run ended."""

    winner_id: str
    verified: bool
    """True when the winner passed every check in the tier `attest`."""
    faster: bool
    """True when the lower end of its interval over the reference is above 1 plus the noise floor."""
    summary: str
    stopped_by: Literal["done", "budget", "interrupted"]


# --- events: the only thing that is stored; everything else is folded from them ---


class RunStarted(Record):
    """A run begins: everything that it depends on."""

    type: Literal["run_started"] = "run_started"
    run_id: str
    started: str
    """ISO 8601, UTC."""
    task: Task
    device: Device
    config: Config
    versions: dict[str, str]


class Analyzed(Record):
    """The task was exported and its costs counted."""

    type: Literal["analyzed"] = "analyzed"
    analyses: tuple[Analysis, ...]
    """One a workload."""
    wall_s: float


class BaselineMeasured(Record):
    """One rung of the ladder was measured, or found to be unavailable."""

    type: Literal["baseline_measured"] = "baseline_measured"
    baseline: Baseline
    wall_s: float


class AttemptFinished(Record):
    """A candidate was written, evaluated and judged."""

    type: Literal["attempt_finished"] = "attempt_finished"
    attempt: Attempt


class FinalMeasured(Record):
    """A finalist measured again in fresh processes with new seeds. Only these figures are published."""

    type: Literal["final_measured"] = "final_measured"
    candidate_id: str
    evaluation: Evaluation


class RunFinished(Record):
    """The winner was chosen from the final measurements."""

    type: Literal["run_finished"] = "run_finished"
    outcome: Outcome


Event = Annotated[
    RunStarted | Analyzed | BaselineMeasured | AttemptFinished | FinalMeasured | RunFinished,
    Field(discriminator="type"),
]


class RunState(Record):
    """A run as far as it has come: the fold of its events."""

    started: RunStarted
    analyses: tuple[Analysis, ...] = ()
    baselines: tuple[Baseline, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    finals: tuple[FinalMeasured, ...] = ()
    outcome: Outcome | None = None
    spent_s: float = 0.0
    """Wall seconds that the recorded events account for."""

    def candidate(self, candidate_id: str) -> Candidate:
        """Returns the candidate of an attempt. Raises KeyError for an unknown id."""
        for attempt in self.attempts:
            if attempt.candidate.id == candidate_id:
                return attempt.candidate
        raise KeyError(candidate_id)

    def best(self) -> Attempt | None:
        """Returns the last accepted attempt, which is the best so far by the search tier."""
        accepted = [a for a in self.attempts if a.verdict == "accepted"]
        return accepted[-1] if accepted else None


def fold(state: RunState | None, event: Event) -> RunState:
    """Returns the state after `event`. Raises ValueError where the event cannot follow."""
    match event:
        case RunStarted():
            if state is not None:
                raise ValueError("a run starts once")
            return RunState(started=event)
        case _ if state is None:
            raise ValueError(f"{event.type} before run_started")
        case Analyzed():
            return state.model_copy(update={"analyses": event.analyses, "spent_s": state.spent_s + event.wall_s})
        case BaselineMeasured():
            rungs = (*state.baselines, event.baseline)
            return state.model_copy(update={"baselines": rungs, "spent_s": state.spent_s + event.wall_s})
        case AttemptFinished():
            spent = state.spent_s + event.attempt.usage.wall_s
            return state.model_copy(update={"attempts": (*state.attempts, event.attempt), "spent_s": spent})
        case FinalMeasured():
            spent = state.spent_s + event.evaluation.wall_s
            return state.model_copy(update={"finals": (*state.finals, event), "spent_s": spent})
        case RunFinished():
            return state.model_copy(update={"outcome": event.outcome})
