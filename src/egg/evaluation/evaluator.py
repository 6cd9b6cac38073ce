"""The evaluator: a trusted caller that holds the verdict and imports no candidate code."""

from __future__ import annotations

import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import getuid
from pathlib import Path
from typing import TypeVar

from egg.errors import SandboxError, TaskError
from egg.evaluation.audit.auditor import audit
from egg.evaluation.audit.kept import KeptAudits
from egg.evaluation.audit.verdict import OWN
from egg.evaluation.crew import Crew, Engaged
from egg.evaluation.desk import CandidateDesk, CandidateFailed, ReferenceLost
from egg.evaluation.devices.nvml import open_gpu, preflight
from egg.evaluation.examination import Examination
from egg.evaluation.harness import harness_hash
from egg.evaluation.setting import Entropy, Setting
from egg.evaluation.tiers import PLANS, Limits, TierPlan, with_draws
from egg.evaluation.timing.floor import BelowFloor, judge
from egg.evaluation.timing.ladder import Ladder
from egg.evaluation.timing.legs import Undisturbed, quiet_host
from egg.evaluation.timing.noise import timed_against_itself
from egg.evaluation.workers.environment import KEPT_HEAP_BYTES, SPIN_COUNT
from egg.evaluation.workers.local import LocalWorkplace
from egg.evaluation.workers.workplace import Worker, Workplace
from egg.protocols import Clock
from egg.schema.analysis import Analysis
from egg.schema.audit import Audit
from egg.schema.candidate import Candidate
from egg.schema.evaluation import UNKNOWN, Baseline, Basis, Evaluation, Failure, Status, Tier, Timing
from egg.schema.run import Config
from egg.schema.task import Task

T = TypeVar("T")


def system_entropy() -> int:
    """Returns 32 bits from the operating system, which nobody can foresee."""
    return secrets.randbits(32)


def default_lock_path() -> Path:
    """Returns the file that all runs of one user lock while they time."""
    return Path(tempfile.gettempdir()) / f"egg-timing-{getuid()}.lock"


@dataclass(frozen=True)
class House:
    """What an evaluator is given besides the task: limits, clock, entropy, the lock of the host."""

    limits: Limits = field(default_factory=Limits)
    clock: Clock = time.monotonic
    entropy: Entropy = system_entropy
    lock_path: Path | None = None
    audits: Path | None = None
    """Folder where verdicts of audits are kept between evaluators; None keeps none."""
    barred_ok: bool = False
    """True to evaluate candidates of a barred task all the same; each evaluation then says so."""


class LocalEvaluator:
    """Implements `Evaluator` on this machine. One reference worker serves all candidates of the search tier."""

    def __init__(
        self,
        task: Task,
        config: Config,
        workdir: Path,
        analyses: Sequence[Analysis] = (),
        house: House | None = None,
        workplace: Workplace | None = None,
    ) -> None:
        self._task = task
        self._config = config
        self._analyses = tuple(analyses)
        self._house = house or House()
        self._lock_path = self._house.lock_path or default_lock_path()
        self._owns_workplace = workplace is None
        self._workplace = workplace or LocalWorkplace(config.threads, workdir.resolve())
        self._crew = Crew(task, self._workplace, workdir.resolve(), self._house.limits, config)
        self._reference: Engaged | None = None
        self._audit: Audit | None = None
        self._noise_floor_pct: float | None = None
        self._twin: Worker | None = None
        self._gpu = open_gpu(time.sleep) if config.target == "cuda" else None

    def audit(self) -> Audit:
        """Returns whether the task can tell a good candidate from a trivial one. Raises SandboxError or TaskError."""
        kept = KeptAudits(self._house.audits, self._config.policy) if self._house.audits else None
        if self._audit is None and kept is not None:
            self._audit = kept.find(self._task)
        if self._audit is None:
            self._audit = self._with_reference(self._audited)
            if kept is not None:
                kept.keep(self._audit)
        return self._audit

    def _audited(self, reference: Engaged) -> Audit:
        return audit(self._task, self._config.policy, reference.desk.ask, self._house.entropy, self._house.clock)

    def baseline(self, name: str) -> Baseline:
        """Returns one rung of the ladder; one that can't be built is data. Raises SandboxError or TaskError."""
        ladder = Ladder(self._crew, self._lock_path, self._house.entropy)
        return self._with_reference(lambda reference: ladder.measure(reference, name))

    def evaluate(self, candidate: Candidate, tier: Tier, allowance_s: float) -> Evaluation:
        """Returns what was seen. Raises SandboxError or TaskError, never for the candidate's faults.

        A task that is barred is a TaskError in the tier `attest`, before the candidate is run.
        """
        if tier == "attest":
            self.refuse_barred()
        ends = self._house.clock() + allowance_s

        def left_s() -> float:
            return ends - self._house.clock()

        started = self._house.clock()
        seen = self._examine(candidate, tier, left_s)
        return seen.updated(wall_s=self._house.clock() - started)

    def refuse_barred(self) -> None:
        """Raises TaskError where the task is barred and the caller did not ask to go on all the same."""
        found = self.audit()
        if found.verdict == "barred" and not self._house.barred_ok:
            raise TaskError(
                f"{found.task} is barred, nothing can be shown with it: {found.reason}; `egg audit` lists each answer"
            )

    def _plan(self, tier: Tier) -> TierPlan:
        """Returns the plan of a tier, with the draws that tell this task's candidates from trivial answers."""
        plan = PLANS[tier]
        if self._audit is None or self._audit.verdict != "redrawn":
            return plan
        return with_draws(plan, [name for name in self._audit.counting if name != OWN])

    def close(self) -> None:
        """Ends every worker; a workplace that was passed in stays open for others."""
        self._dismiss_reference()
        self._crew.spares.close()
        if self._owns_workplace:
            self._workplace.close()

    def _examine(self, candidate: Candidate, tier: Tier, left_s: Callable[[], float]) -> Evaluation:
        """Examines a candidate, again where the reference worker was lost; lost twice, the candidate is the cause."""
        lost = ""
        for _ in range(2):
            try:
                return self._examine_once(candidate, tier, left_s)
            except ReferenceLost as loss:
                self._dismiss_reference()
                lost = str(loss)
        try:
            self._standing_reference()  # raises where the house itself is broken
        except ReferenceLost as loss:
            raise SandboxError(f"no reference worker stays alive: {loss}") from loss
        message = "the reference worker ended each time that this candidate ran, and not without it"
        return Evaluation(
            candidate_id=candidate.id,
            tier=tier,
            status=Status.REJECTED,
            failure=Failure(phase="check", message=message, detail=lost),
            environment=self._environment(tier),
            wall_s=0.0,
        )

    def _examine_once(self, candidate: Candidate, tier: Tier, left_s: Callable[[], float]) -> Evaluation:
        """Examines a candidate with workers as its tier wants them; fresh ones start side by side."""
        fresh = PLANS[tier].fresh
        called = self._crew.call_candidate(candidate.id, fresh)
        reference: Engaged | None = None
        self._twin = self._crew.call_reference(fresh) if fresh and self._noise_floor_pct is None else None
        try:
            reference = self._crew.engage_reference(fresh) if fresh else self._standing_reference()
            required = self._house.limits.required_isolation if tier == "attest" else ()
            desk = self._crew.engage_candidate(called.worker, left_s, required)
            if self._config.target != "cpu" and not fresh:
                self._crew.spares.prepare()
            return self._examine_with(reference, desk, called.exchange, candidate, tier, left_s)
        finally:
            self._crew.dismiss(called.worker)
            shutil.rmtree(called.exchange, ignore_errors=True)
            if self._twin is not None:
                self._crew.dismiss(self._twin)
                self._twin = None
            if fresh and reference is not None:
                self._crew.dismiss(reference.desk.worker)

    def _with_reference(self, work: Callable[[Engaged], T]) -> T:
        """Returns what `work` gives with the standing reference worker; a lost one is rebuilt once."""
        try:
            return work(self._standing_reference())
        except ReferenceLost:
            self._dismiss_reference()
        try:
            return work(self._standing_reference())
        except ReferenceLost as loss:
            self._dismiss_reference()
            raise SandboxError(f"the reference worker was lost twice: {loss}") from loss

    def _standing_reference(self) -> Engaged:
        if self._reference is None or not self._reference.desk.worker.alive:
            self._dismiss_reference()
            self._reference = self._crew.engage_reference(fresh=False)
        return self._reference

    def _dismiss_reference(self) -> None:
        if self._reference is not None:
            self._crew.dismiss(self._reference.desk.worker)
            self._reference = None

    def _examine_with(
        self,
        reference: Engaged,
        desk: CandidateDesk,
        folder: Path,
        candidate: Candidate,
        tier: Tier,
        left_s: Callable[[], float],
    ) -> Evaluation:
        house, plan = self._house, self._plan(tier)
        setting = Setting(
            self._task,
            self._config.policy,
            plan,
            house.limits,
            folder,
            self._lock_path,
            house.entropy,
            left_s,
            self._config.target,
            self._gpu or Undisturbed(),
            self._crew.spares.settle,
        )
        examination = Examination(setting, reference, desk, candidate)
        failed: CandidateFailed | None = None
        try:
            examination.run()
            self._note_floor(examination)
            if tier == "attest" and self._noise_floor_pct is None:
                self._noise_floor_pct = self._against_itself(reference, setting)
        except CandidateFailed as fault:
            failed = fault
            if not desk.worker.alive:  # a build may be half written, with its lock taken
                self._crew.forget_builds(candidate.id)
        return self._evaluation(examination, candidate, tier, failed).updated(
            basis=self._basis(desk, tier, examination.notes.timings)
        )

    def _basis(self, desk: CandidateDesk, tier: Tier, timings: Sequence[Timing]) -> Basis:
        isolation = desk.worker.isolation
        return Basis(
            policy=self._config.policy,
            timing_method=timings[0].method if timings else UNKNOWN,
            noise_floor_pct=self._noise_floor_pct if tier == "attest" else None,
            isolation=isolation.active,
            missing_isolation=isolation.missing,
            hashes={"task": self._task.content_hash, "harness": harness_hash()},
        )

    def _against_itself(self, reference: Engaged, setting: Setting) -> float:
        """Returns the noise floor of the attest tier in percent, which one more worker with the reference shows."""
        twin = self._crew.engage_reference(setting.plan.fresh, self._twin)
        limit, folder = setting.limits.pool_on(setting.target), str(setting.folder)

        def pool(engaged: Engaged, workload: str, seeds: list[int]) -> None:
            engaged.desk.ask("pool", folder=folder, workload=workload, seeds=seeds, limit_bytes=limit)

        with quiet_host(self._lock_path):
            return timed_against_itself(self._task, twin, reference, setting.timer(), pool)

    def _note_floor(self, examination: Examination) -> None:
        """Notes a time that looks too short. Raises CandidateFailed for one that the device's limits do not allow."""
        analyses = {a.workload: a for a in self._analyses}
        for timing in examination.notes.timings:
            if timing.workload not in analyses:
                continue
            try:
                finding = judge(timing.candidate_ms, analyses[timing.workload])
            except BelowFloor as error:
                raise CandidateFailed(Status.REJECTED, Failure(phase="time", message=str(error))) from error
            if finding:
                examination.notes.find(finding)

    def _evaluation(
        self, examination: Examination, candidate: Candidate, tier: Tier, failed: CandidateFailed | None
    ) -> Evaluation:
        notes = examination.notes
        if self._audit is not None and self._audit.verdict == "barred":
            notes.find(f"the task is barred, so this shows nothing: {self._audit.reason}")
        return Evaluation(
            candidate_id=candidate.id,
            tier=tier,
            status=failed.status if failed else Status.PASSED,
            failure=failed.failure if failed else None,
            trials=tuple(notes.trials),
            timings=() if failed else tuple(notes.timings),
            findings=tuple(notes.findings),
            skipped=tuple(notes.skipped),
            profile={} if failed else notes.profile,
            kernels=() if failed else notes.kernels,
            environment={
                **examination.described,
                **(preflight(self._gpu) if self._config.target == "cuda" else {}),
                **notes.environment,
                **self._environment(tier),
            },
            wall_s=0.0,
        )

    def _environment(self, tier: Tier) -> dict[str, str]:
        return {
            "python": sys.version.split()[0],
            "start_method": self._crew.start_method(PLANS[tier].fresh),
            "threads": str(self._config.threads),
            "openmp_spin_count": str(SPIN_COUNT),
            "kept_heap_bytes": str(KEPT_HEAP_BYTES),
            "policy": self._config.policy,
            "mode": "train" if self._task.training else "eval",
        }
