"""Small real parts of the machine, without torch, workers or files.

`FakeAuthor` offers four structures and three knobs; `FakeEvaluator` gives each of them an effect that follows from a
hash. The same seed therefore gives the same run, and a planner has something to find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from egg.errors import UsageError
from egg.protocols import Machine, OptionsOf, Planner
from egg.schema.analysis import Analysis
from egg.schema.base import content_hash
from egg.schema.candidate import Candidate, KnobSpec
from egg.schema.device import Device
from egg.schema.evaluation import Baseline, Evaluation, Status, Tier
from egg.schema.plan import Option, StagePlan
from egg.schema.run import Diagnosis, Event, Outcome, RunState, Verdict
from egg.schema.task import Task
from egg.testing.factories import make_analysis, make_baseline, make_evaluation, make_failed_evaluation, make_plan

MOVES = {"fuse": 1.5, "fold": 1.3, "merge": 1.1, "split": 0.9}
"""Structure moves of the fake author with the effect that it promises."""
KNOBS = {
    "threads": KnobSpec(choices=(1, 2, 4), stage="mapping", principle_id="map", doc="threads of the outer loop"),
    "rows": KnobSpec(choices=(8, 16, 32, 64), stage="tiling", principle_id="tile", doc="rows of a block"),
    "vector": KnobSpec(choices=(1, 4, 8), stage="memory", principle_id="load", doc="elements of one load"),
}


@dataclass
class ManualClock:
    """A clock that moves when it is told to."""

    now_s: float = 0.0

    def __call__(self) -> float:
        """Returns the time that was set."""
        return self.now_s

    def advance(self, seconds: float) -> None:
        """Moves the clock on."""
        self.now_s += seconds


class MemoryArchive:
    """An archive in a list."""

    def __init__(self, events: Sequence[Event] = ()) -> None:
        self.stored = list(events)

    def append(self, event: Event) -> None:
        """Stores one event."""
        self.stored.append(event)

    def events(self) -> Iterator[Event]:
        """Yields the stored events in order."""
        yield from tuple(self.stored)


@dataclass
class RecordingListener:
    """Remembers what it was told."""

    plans: list[StagePlan] = field(default_factory=list[StagePlan])
    events: list[Event] = field(default_factory=list[Event])

    def on_plan(self, state: RunState, plan: StagePlan) -> None:
        """Remembers the plan."""
        self.plans.append(plan)

    def on_event(self, state: RunState, event: Event) -> None:
        """Remembers the event."""
        self.events.append(event)


class FakeAnalyst:
    """Gives every workload the same small graph."""

    def analyze(self, task: Task, device: Device) -> tuple[Analysis, ...]:
        """Returns one analysis a workload, in order."""
        return tuple(make_analysis(task_hash=task.content_hash, workload=w.name) for w in task.workloads)


class FakeAuthor:
    """Code, profile and debug agent over the synthetic space of MOVES and KNOBS."""

    name = "fake"

    def reference(self, task: Task, analyses: Sequence[Analysis]) -> Candidate:
        """Returns the task's own source as a candidate without a schedule."""
        return Candidate(language="torch", source=task.source, author=self.name, rationale="the task itself")

    def options(self, task: Task, analyses: Sequence[Analysis], parent: Candidate) -> tuple[Option, ...]:
        """Returns the moves that were not made yet, and the neighbours of every knob."""
        made = {step.removesuffix(".safe") for step in parent.structure}
        moves = [
            Option(id=m, stage="structure", principle_id=m, move=m, title=f"{m} it", predicted_effect=effect)
            for m, effect in MOVES.items()
            if m not in made
        ]
        steps = [
            Option(
                id=f"{knob}={value}",
                stage=spec.stage,
                principle_id=spec.principle_id,
                move=knob,
                title=f"{knob} from {parent.schedule[knob]} to {value}",
                predicted_effect=1.05,
            )
            for knob, spec in parent.schedule_space.items()
            for value in spec.neighbours(parent.schedule[knob])
        ]
        return (*moves, *steps)

    def write(self, task: Task, analyses: Sequence[Analysis], parent: Candidate, plan: StagePlan) -> Candidate:
        """Returns the parent with one more move or another knob value. Raises UsageError for an unknown option."""
        if plan.option_id not in {o.id for o in self.options(task, analyses, parent)}:
            raise UsageError(f"option {plan.option_id!r} is not offered from {parent.id}; choose one of its options")
        knob, _, value = str(plan.option_id).partition("=")
        if value:
            schedule = {**parent.schedule, knob: int(value)}
            return parent.updated(schedule=schedule, stage=plan.stage, parent_ids=(parent.id,))
        return self._structured(
            (*parent.structure, knob), parent.schedule or {k: s.choices[0] for k, s in KNOBS.items()}, parent.id
        )

    def repair(
        self, task: Task, analyses: Sequence[Analysis], failed: Candidate, evaluation: Evaluation, plan: StagePlan
    ) -> Candidate | None:
        """Returns the failed candidate with the safe form of its last move; None where it is safe already."""
        if not failed.structure or failed.structure[-1].endswith(".safe"):
            return None
        structure = (*failed.structure[:-1], f"{failed.structure[-1]}.safe")
        return self._structured(structure, failed.schedule, failed.id)

    def diagnose(self, analyses: Sequence[Analysis], device: Device, evaluation: Evaluation) -> Diagnosis:
        """Returns memory for what passed, and what failed for what did not."""
        if evaluation.status is Status.PASSED:
            return Diagnosis(bottleneck="memory", summary="memory binds it")
        return Diagnosis(bottleneck="correctness", summary=f"it ended with {evaluation.status}")

    def _structured(
        self, structure: tuple[str, ...], schedule: dict[str, int | str | bool], parent_id: str
    ) -> Candidate:
        return Candidate(
            language="cpp",
            source=f"# {' then '.join(structure)}\nclass ModelNew: ...\n",
            schedule=schedule,
            schedule_space=KNOBS,
            structure=structure,
            parent_ids=(parent_id,),
            author=self.name,
            rationale=f"the last step is {structure[-1]}",
        )


def _nothing() -> None:
    return None


@dataclass
class FakeEvaluator:
    """Gives every candidate a speedup, or a failure, that follows from its content."""

    clock: ManualClock = field(default_factory=ManualClock)
    """Moved on by what an evaluation would take."""
    pause: Callable[[], None] = _nothing
    """Called inside every evaluation, so that a test can wait, count or interrupt there."""
    failing_share: float = 0.2
    """Share of the structures that fail."""
    evaluated: list[tuple[str, Tier]] = field(default_factory=list[tuple[str, Tier]])
    """Candidate id and tier of every evaluation, in order."""
    closed: bool = False

    def baseline(self, name: str) -> Baseline:
        """Returns a rung that is as fast as eager, or up to 1.5 times as fast."""
        self.pause()
        self.clock.advance(2.0)
        return make_baseline(name=name, speedup_over_eager=1.0 if name == "eager" else 1.0 + _share(name) / 2)

    def evaluate(self, candidate: Candidate, tier: Tier, allowance_s: float) -> Evaluation:
        """Returns the figures that the content of the candidate stands for."""
        self.pause()
        wall_s = 0.5 + _share("wall", candidate.id)
        self.clock.advance(wall_s)
        self.evaluated.append((candidate.id, tier))
        if candidate.structure and _share("fails", *candidate.structure) < self.failing_share:
            return make_failed_evaluation(candidate_id=candidate.id, tier=tier, wall_s=wall_s)
        speedup = true_speedup(candidate) * (1 + 0.01 * (_share("noise", candidate.id, tier) - 0.5))
        return make_evaluation(speedup, candidate_id=candidate.id, tier=tier, wall_s=wall_s)

    def close(self) -> None:
        """Remembers that it was closed."""
        self.closed = True


def true_speedup(candidate: Candidate) -> float:
    """Returns what FakeEvaluator measures but for its noise: the product of the effects of every step and knob."""
    speedup = 1.0
    for step in candidate.structure:
        speedup *= 0.85 + 0.7 * _share("step", step)
    for knob, value in candidate.schedule.items():
        speedup *= 0.85 + 0.4 * _share("knob", *candidate.structure[:1], knob, str(value))
    return speedup


def _share(*parts: str) -> float:
    """Returns a number from 0 to 1 that follows from the parts."""
    return int(content_hash(*parts), 16) / 16**16


class FirstOptionPlanner:
    """Takes every option of the best candidate once, in the order in which they are offered."""

    def __init__(self, attempts: int = 6) -> None:
        self.attempts = attempts

    def next(self, state: RunState, options_of: OptionsOf) -> StagePlan | None:
        """Returns the first untried option as a plan."""
        index, best = len(state.attempts), state.best()
        if index == 0:
            return make_plan()
        if best is None or index >= self.attempts:
            return None
        tried = {(a.plan.parent_id, a.plan.option_id) for a in state.attempts}
        for option in options_of(best.candidate):
            if (best.candidate.id, option.id) not in tried:
                parent = {"parent_id": best.candidate.id, "option_id": option.id, "stage": option.stage}
                return make_plan(index=index, predicted_effect=option.predicted_effect, **parent)
        return None

    def repair(self, state: RunState) -> StagePlan | None:
        """Returns the plan of the last attempt again where that failed and was no repair itself."""
        last = state.attempts[-1] if state.attempts else None
        if last is None or last.verdict != "failed" or last.repaired_from or len(state.attempts) >= self.attempts:
            return None
        return last.plan.updated(index=len(state.attempts))

    def judge(self, state: RunState, plan: StagePlan, evaluation: Evaluation) -> tuple[Verdict, str]:
        """Returns accepted for whatever is faster than the best."""
        best = state.best()
        if evaluation.speedup is None:
            return "failed", "it did not pass"
        if best is None or best.effect is None or evaluation.speedup > best.effect:
            return "accepted", "it is the fastest so far"
        return "rejected", "it is not faster"

    def finalists(self, state: RunState) -> tuple[str, ...]:
        """Returns the best candidate and the reference."""
        best = state.best()
        names = ([best.candidate.id] if best else []) + [state.attempts[0].candidate.id]
        return tuple(dict.fromkeys(names))

    def outcome(self, state: RunState, interrupted: bool) -> Outcome:
        """Returns the first finalist as the winner."""
        first = state.finals[0]
        passed = first.evaluation.status is Status.PASSED
        faster = (first.evaluation.speedup_low or 0.0) > 1.0
        return Outcome(
            winner_id=first.candidate_id,
            verified=passed,
            faster=faster,
            summary="the first finalist",
            stopped_by="interrupted" if interrupted else "done",
        )


def fake_machine(planner: Planner, archive: MemoryArchive, evaluator: FakeEvaluator | None = None) -> Machine:
    """Returns a machine of fakes around `planner`; it shares the clock of the evaluator."""
    evaluator = FakeEvaluator() if evaluator is None else evaluator
    author = FakeAuthor()
    return Machine(
        analyst=FakeAnalyst(),
        planner=planner,
        code=author,
        profile=author,
        debug=author,
        evaluator=evaluator,
        archive=archive,
        clock=evaluator.clock,
    )
