"""The loop. What comes next follows from the recorded events alone, so a run can be killed at any moment.

    run_started -> analyzed -> baseline_measured (one a rung) -> attempt_finished (many)
                -> final_measured (one a finalist) -> run_finished

A step that was not stored did not happen: it is done again on resume, and nothing that was stored is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from egg.errors import ArchiveError, SandboxError, UsageError
from egg.protocols import Machine
from egg.schema.candidate import Candidate
from egg.schema.evaluation import Status
from egg.schema.plan import Option, StagePlan
from egg.schema.run import (
    Analyzed,
    Attempt,
    AttemptFinished,
    BaselineMeasured,
    Event,
    FinalMeasured,
    RunFinished,
    RunStarted,
    RunState,
    Usage,
    fold,
)

SANDBOX_RETRIES = 2
"""A worker may be lost this often in one step before the run gives up."""
FINAL_ALLOWANCE_S = 120.0
"""Deadline of one final measurement where no budget is set."""
FINAL_ALLOWANCE_MIN_S = 20.0
"""The same at the least: a winner that is cut off is worth less than a few seconds over the budget."""

Result = TypeVar("Result")


def run(machine: Machine, started: RunStarted) -> RunState:
    """Returns the finished state of a new run. Raises UsageError where the archive already holds one."""
    if _folded(machine.archive.events()) is not None:
        raise UsageError(f"the archive of {started.run_id} already holds a run; resume it, or choose another folder")
    loop = _Loop(machine)
    return loop.finish(loop.stored(None, started))


def resume(machine: Machine) -> RunState:
    """Returns the finished state of the run in the archive, going on from wherever it stopped. Raises ArchiveError."""
    state = _folded(machine.archive.events())
    if state is None:
        raise ArchiveError("the archive holds no run: it was ended before its first event; start it again")
    return _Loop(machine).finish(state)


@dataclass
class _Loop:
    machine: Machine
    offered: dict[str, Sequence[Option]] = field(default_factory=dict[str, Sequence[Option]])
    """Options by candidate id, remembered because the planner asks again and again."""

    def finish(self, state: RunState) -> RunState:
        """Returns the state after run_finished.

        The first KeyboardInterrupt ends the search and goes on with the final measurements. One before attempt 0 is
        stored, during the finals, or a second one is raised: the log is whole, and `resume` goes on from it, with the
        search again where no final was stored yet.
        """
        interrupted = False
        while state.outcome is None:
            try:
                state = self.stored(state, self.next_event(state, interrupted))
            except KeyboardInterrupt:
                recorded = _folded(self.machine.archive.events())
                if interrupted or recorded is None or recorded.finals or not recorded.attempts:
                    raise
                interrupted, state = True, recorded
        return state

    def next_event(self, state: RunState, interrupted: bool) -> Event:
        """Does the one step that `state` asks for, and returns what came of it."""
        rungs = state.started.config.ladder
        if not state.analyses:
            return self.analyzed(state)
        if len(state.baselines) < len(rungs):
            return self.baseline_measured(rungs[len(state.baselines)])
        if not state.finals and not interrupted:
            attempt = self.repaired(state) or self.attempted(state)
            if attempt is not None:
                return AttemptFinished(attempt=attempt)
        measured = {final.candidate_id for final in state.finals}
        waiting = [name for name in self.machine.planner.finalists(state) if name not in measured]
        if waiting:
            return self.final_measured(state, waiting)
        return RunFinished(outcome=self.machine.planner.outcome(state, interrupted))

    def stored(self, state: RunState | None, event: Event) -> RunState:
        """Returns the state after `event`, which is in the archive by then and known to the listeners."""
        after = fold(state, event)
        self.machine.archive.append(event)
        for listener in self.machine.listeners:
            listener.on_event(after, event)
        return after

    def analyzed(self, state: RunState) -> Analyzed:
        begin_s = self.machine.clock()
        analyses = self.machine.analyst.analyze(state.started.task, state.started.device)
        return Analyzed(analyses=analyses, wall_s=self.machine.clock() - begin_s)

    def baseline_measured(self, rung: str) -> BaselineMeasured:
        begin_s = self.machine.clock()
        baseline = _patiently(lambda: self.machine.evaluator.baseline(rung))
        return BaselineMeasured(baseline=baseline, wall_s=self.machine.clock() - begin_s)

    def final_measured(self, state: RunState, waiting: Sequence[str]) -> FinalMeasured:
        candidate = state.candidate(waiting[0])
        allowance_s = _final_allowance_s(state, len(waiting))
        evaluation = _patiently(lambda: self.machine.evaluator.evaluate(candidate, "attest", allowance_s))
        return FinalMeasured(candidate_id=candidate.id, evaluation=evaluation)

    def attempted(self, state: RunState) -> Attempt | None:
        """Returns the next attempt of the search, or None when the search is over."""
        begin_s = self.machine.clock()
        plan = self.machine.planner.next(state, lambda parent: self.options(state, parent))
        if plan is None:
            return None
        self.announce(state, plan)
        return self.tried(state, plan, self.written(state, plan), begin_s)

    def repaired(self, state: RunState) -> Attempt | None:
        """Returns the repair of the last attempt, or None where it needs none or the debug agent steps back."""
        plan = self.machine.planner.repair(state)
        if plan is None:
            return None
        failed, task = state.attempts[-1], state.started.task
        begin_s = self.machine.clock()
        candidate = self.machine.debug.repair(task, state.analyses, failed.candidate, failed.evaluation, failed.plan)
        if candidate is None or _attempt_of(state, candidate.id) is not None:
            return None
        self.announce(state, plan)
        return self.tried(state, plan, candidate, begin_s).updated(repaired_from=failed.candidate.id)

    def announce(self, state: RunState, plan: StagePlan) -> None:
        """Tells the listeners what is about to be done."""
        for listener in self.machine.listeners:
            listener.on_plan(state, plan)

    def tried(self, state: RunState, plan: StagePlan, candidate: Candidate, begin_s: float) -> Attempt:
        """Returns what came of a plan. A program that was tried before is not run again: its evaluation serves."""
        machine = self.machine
        earlier = _attempt_of(state, candidate.id)
        if earlier is not None:
            return _repeated(earlier, plan, candidate, machine.clock() - begin_s)
        evaluation = _patiently(lambda: machine.evaluator.evaluate(candidate, "search", plan.allowance_s))
        diagnosis = machine.profile.diagnose(state.analyses, state.started.device, evaluation)
        verdict, reason = machine.planner.judge(state, plan, evaluation)
        return Attempt(
            plan=plan,
            candidate=candidate,
            evaluation=evaluation,
            diagnosis=diagnosis,
            verdict=verdict,
            reason=reason,
            usage=Usage(wall_s=machine.clock() - begin_s),
        )

    def written(self, state: RunState, plan: StagePlan) -> Candidate:
        """Returns the candidate of a plan: the reference where it starts from nothing."""
        task, code = state.started.task, self.machine.code
        if plan.parent_id is None:
            return code.reference(task, state.analyses)
        return code.write(task, state.analyses, state.candidate(plan.parent_id), plan)

    def options(self, state: RunState, parent: Candidate) -> Sequence[Option]:
        """Returns what the code agent offers from `parent`."""
        if parent.id not in self.offered:
            self.offered[parent.id] = self.machine.code.options(state.started.task, state.analyses, parent)
        return self.offered[parent.id]


def _folded(events: Iterable[Event]) -> RunState | None:
    """Returns the state after `events`, or None where there are none."""
    state: RunState | None = None
    for event in events:
        state = fold(state, event)
    return state


def _patiently(step: Callable[[], Result]) -> Result:
    """Returns what `step` returns; a lost worker is replaced by trying again, and raised when it happens too often."""
    for _ in range(SANDBOX_RETRIES):
        try:
            return step()
        except SandboxError:
            continue
    return step()


def _attempt_of(state: RunState, candidate_id: str) -> Attempt | None:
    """Returns the first attempt at this candidate."""
    return next((a for a in state.attempts if a.candidate.id == candidate_id), None)


def _repeated(earlier: Attempt, plan: StagePlan, candidate: Candidate, wall_s: float) -> Attempt:
    """Returns the attempt at a program that was already tried: the plan is spent, the evaluation is the earlier one."""
    return Attempt(
        plan=plan,
        candidate=candidate,
        evaluation=earlier.evaluation,
        diagnosis=earlier.diagnosis,
        verdict="rejected" if earlier.evaluation.status is Status.PASSED else "failed",
        reason=f"the same program as attempt {earlier.plan.index}, so it was not run again",
        usage=Usage(wall_s=wall_s),
    )


def _final_allowance_s(state: RunState, waiting: int) -> float:
    """Returns this final's share of what is left of the budget, in seconds."""
    budget_s = state.started.config.budget_s
    if budget_s is None:
        return FINAL_ALLOWANCE_S
    return max((budget_s - state.spent_s) / waiting, FINAL_ALLOWANCE_MIN_S)
