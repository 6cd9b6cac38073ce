"""Candidates of other people's hands, held against a task: for the command line, the Python API and the pytest plugin.

Every import of a room that needs torch is inside the function that uses it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from egg import compose
from egg.candidates.contract import gpu_reason
from egg.candidates.targets import AskedTarget, Target, gpu_name, has_gpu, target_of
from egg.errors import SandboxError, TaskError, UsageError
from egg.schema.evaluation import BUSY_PCT, Status
from egg.schema.run import Config
from egg.schema.verification import Verification

if TYPE_CHECKING:
    from egg.evaluation.evaluator import LocalEvaluator
    from egg.evaluation.workers.local import LocalWorkplace
    from egg.schema.analysis import Analysis
    from egg.schema.candidate import Candidate
    from egg.schema.evaluation import Baseline, Evaluation, Tier
    from egg.schema.task import Policy, Task

LADDER = ("eager", "torch.compile")
ALLOWANCE_S = 600.0
"""What one candidate may take in one tier; each phase has a deadline of its own besides."""
_EARLY = (Status.COMPILE_ERROR, Status.RUNTIME_ERROR)


@dataclass(frozen=True)
class Asked:
    """How a candidate is to be verified."""

    policy: Policy = "strict"
    tier: Tier = "attest"
    ladder: tuple[str, ...] | None = None
    """Rungs to time it against once it has passed; None for LADDER in the tier attest, and for eager alone in the tier
    search. Eager is the reference, which is always timed with it."""

    trusted: bool = False
    """True to go on where the machine can't keep the candidate from files, network and other processes; the result says
    what was missing."""

    target: AskedTarget = "auto"
    """Where it runs; `auto` as in `egg.candidates.targets.target_of`."""

    large: bool = False
    """True to try it past 2^31 elements too, in the tier attest and where memory allows."""

    barred_ok: bool = False
    """True to go on with a task that the audit bars; the result is labelled so, and is no verified one."""

    @property
    def rungs(self) -> tuple[str, ...]:
        """Those that have to be measured besides eager."""
        ladder = self.ladder if self.ladder is not None else LADDER if self.tier == "attest" else ()
        return tuple(name for name in dict.fromkeys(ladder) if name != "eager")


class Verifier:
    """Verifies any number of candidates. Keeps its workers and its compiled code until it is closed."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="egg-verify-")
        self._workplace: LocalWorkplace | None = None
        self._evaluators: dict[tuple[str, Policy], LocalEvaluator] = {}
        self._floors: dict[tuple[str, Target], tuple[tuple[Analysis, ...], str]] = {}
        self._rungs: dict[tuple[LocalEvaluator, str], Baseline] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def verify(self, task: Task, candidate: Candidate, name: str, asked: Asked) -> Verification:
        """Returns the verdict. `name` is what people call the candidate.

        Raises UsageError where this machine can't run it, TaskError and SandboxError as `Evaluator.evaluate` does.
        """
        if asked.large and asked.tier != "attest":
            raise UsageError(f"--large belongs to the tier attest: leave out --tier {asked.tier}")
        target = target_of(asked.target, candidate.source)
        evaluator, analyses, note = self._evaluator(task, asked, target)
        if asked.barred_ok:
            evaluator.audit()  # in the tier search too, so that its figures are labelled
        seen = self._evaluate(evaluator, candidate, asked.tier)
        _check_device(seen, candidate, name)
        passed = seen.status is Status.PASSED
        rungs = tuple(self._rung(evaluator, rung) for rung in asked.rungs) if passed else ()
        return Verification(
            task=task.name,
            task_hash=task.content_hash,
            workloads=tuple(w.name for w in task.workloads),
            training=task.training,
            candidate=name,
            entry=candidate.entry,
            evaluation=seen,
            baselines=rungs,
            floor_ms=sum(a.floor_ms for a in analyses) if analyses else None,
            device=device_name(target),
            versions=compose.versions(),
            notes=(*task.notes, *([note] if note else []), *busy_notes(seen, rungs)),
        )

    def close(self) -> None:
        """Ends every worker and removes every file."""
        for evaluator in self._evaluators.values():
            evaluator.close()
        self._evaluators.clear()
        if self._workplace is not None:
            self._workplace.close()
            self._workplace = None
        self._folder.cleanup()

    def _evaluate(self, evaluator: LocalEvaluator, candidate: Candidate, tier: Tier) -> Evaluation:
        """Returns what the tier gave. What a cheap search-tier check finds is not looked for at length."""
        seen = evaluator.evaluate(candidate, "search", ALLOWANCE_S)
        if tier == "search" or seen.status is not Status.PASSED:
            return seen
        return evaluator.evaluate(candidate, tier, ALLOWANCE_S)

    def _rung(self, evaluator: LocalEvaluator, name: str) -> Baseline:
        """Returns a rung of the ladder, measured against eager once for all candidates of a task."""
        if (evaluator, name) not in self._rungs:
            self._rungs[evaluator, name] = evaluator.baseline(name)
        return self._rungs[evaluator, name]

    def _evaluator(self, task: Task, asked: Asked, target: Target) -> tuple[LocalEvaluator, tuple[Analysis, ...], str]:
        from egg.evaluation.evaluator import House, LocalEvaluator
        from egg.evaluation.tiers import Limits
        from egg.evaluation.workers.local import LocalWorkplace

        root = Path(self._folder.name)
        threads = compose.threads()
        if self._workplace is None:
            self._workplace = LocalWorkplace(threads, root)
        analyses, note = self._analyses(task, target) if asked.tier == "attest" else ((), "")
        key = (
            f"{task.content_hash}{bool(analyses)}{asked.trusted}{asked.large}{asked.barred_ok}{target}",
            asked.policy,
        )
        if key not in self._evaluators:
            config = Config(threads=threads, target=target, policy=asked.policy, ladder=("eager", *asked.rungs))
            work = root / str(len(self._evaluators))
            limits = Limits.trusting() if asked.trusted else Limits()
            house = House(
                limits, large=asked.large, audits=compose.cache_folder() / "audits", barred_ok=asked.barred_ok
            )
            self._evaluators[key] = LocalEvaluator(task, config, work, analyses, house, self._workplace)
        return self._evaluators[key], analyses, note

    def _analyses(self, task: Task, target: Target) -> tuple[tuple[Analysis, ...], str]:
        """Returns the costs of the task, for its floor; none, and why, where it can't be exported."""
        key = task.content_hash, target
        if key not in self._floors:
            try:
                self._floors[key] = (tuple(compose.analyst().analyze(task, compose.measured_device(target))), "")
            except (TaskError, SandboxError) as error:
                self._floors[key] = ((), f"no roofline floor: {error}")
        return self._floors[key]


def busy_notes(seen: Evaluation, rungs: Sequence[Baseline]) -> Iterator[str]:
    """Yields, for all that was timed while others kept this machine busy, what that means for its figures."""
    timed = [(f"the candidate on {t.workload}", t.others_pct) for t in seen.timings]
    timed += [(rung.name, rung.others_pct) for rung in rungs]
    for name, others_pct in timed:
        if others_pct is not None and others_pct > BUSY_PCT:
            yield (
                f"others took {others_pct:.0f} % of this machine's processors while {name} was timed in turns with "
                "eager: the speedup is under one load for both, the times in ms are longer than on a quiet machine"
            )


def check_ladder(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Returns the names of rungs. Raises UsageError for one that does not exist."""
    from egg.evaluation.roles.rungs import RUNGS

    for name in names or ():
        if name not in RUNGS:
            raise UsageError(f"--ladder {name!r}: choose from {', '.join(RUNGS)}")
    return None if names is None else tuple(names)


def device_name(target: Target = "cpu") -> str:
    """Returns the name of the processor that work runs on."""
    from egg.analysis.device import cpu_name

    return cpu_name() if target == "cpu" else gpu_name()


def _check_device(seen: Evaluation, candidate: Candidate, name: str) -> None:
    """Raises UsageError where a candidate failed for want of a GPU, which is no fault of its own."""
    reason = gpu_reason(candidate.source)
    if reason is None or seen.status not in _EARLY or has_gpu():
        return
    said = seen.failure.message if seen.failure else str(seen.status)
    raise UsageError(
        f"{name} needs a CUDA device ({reason}) and this machine has none: verify it on one. It ended with {said}"
    )
