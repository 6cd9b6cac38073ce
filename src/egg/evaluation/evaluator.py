"""The evaluator: a trusted caller that holds the verdict and imports no candidate code."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from egg.errors import SandboxError, TaskError
from egg.evaluation.audit.auditor import audit
from egg.evaluation.audit.kept import KeptAudits
from egg.evaluation.audit.verdict import OWN
from egg.evaluation.crew import Crew, Engaged
from egg.evaluation.desk import ReferenceLost
from egg.evaluation.devices.nvml import open_gpu
from egg.evaluation.house import House
from egg.evaluation.sitting import Sittings
from egg.evaluation.standing import StandingReference
from egg.evaluation.tiers import PLANS, TierPlan, with_draws, with_large
from egg.evaluation.timing.ladder import Ladder
from egg.evaluation.workers.local import LocalWorkplace
from egg.evaluation.workers.workplace import Workplace
from egg.schema.analysis import Analysis
from egg.schema.audit import Audit
from egg.schema.candidate import Candidate
from egg.schema.evaluation import Baseline, Basis, Evaluation, Tier
from egg.schema.run import Config
from egg.schema.task import Task


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
        self._house = house or House()
        self._owns_workplace = workplace is None
        self._workplace = workplace or LocalWorkplace(config.threads, workdir.resolve())
        gpu = open_gpu(time.sleep, os.environ.get("CUDA_VISIBLE_DEVICES", "")) if config.target == "cuda" else None
        self._crew = Crew(task, self._workplace, workdir.resolve(), self._house.limits, config, gpu)
        self._standing = StandingReference(self._crew)
        self._sittings = Sittings(self._crew, self._standing, self._house, analyses)
        self._audit: Audit | None = None

    def audit(self) -> Audit:
        """Returns whether the task can tell a good candidate from a trivial one. Raises SandboxError or TaskError."""
        kept = KeptAudits(self._house.audits, self._config.policy) if self._house.audits else None
        if self._audit is None and kept is not None:
            self._audit = kept.find(self._task)
        if self._audit is None:
            self._audit = self._standing.serve(self._audited)
            if kept is not None:
                kept.keep(self._audit)
        return self._audit

    def _audited(self, reference: Engaged) -> Audit:
        return audit(self._task, self._config.policy, reference.desk.ask, self._house.entropy, self._house.clock)

    def baseline(self, name: str) -> Baseline:
        """Returns one rung of the ladder; one that can't be built is data. Raises SandboxError or TaskError."""
        ladder = Ladder(self._crew, self._house.lock_path, self._house.entropy)
        return self._standing.serve(lambda reference: ladder.measure(reference, name))

    def evaluate(self, candidate: Candidate, tier: Tier, allowance_s: float) -> Evaluation:
        """Returns what was seen. Raises SandboxError or TaskError, never for the candidate's faults.

        A task that is barred is a TaskError in the tier `attest`, before the candidate is run.
        """
        if tier == "attest":
            self.refuse_barred()
        started = self._house.clock()
        ends = started + allowance_s
        seen = self._examine(candidate, tier, lambda: ends - self._house.clock())
        if self._audit is not None and self._audit.verdict == "barred":
            seen = _barred(seen, self._audit.reason, self._config.policy)
        return seen.updated(wall_s=self._house.clock() - started)

    def refuse_barred(self) -> None:
        """Raises TaskError where the task is barred and the caller did not ask to go on all the same."""
        found = self.audit()
        if found.verdict == "barred" and not self._house.barred_ok:
            raise TaskError(
                f"{found.task} is barred, nothing can be shown with it: {found.reason}; `egg audit` lists each answer"
                " that passes, and `egg verify --barred-ok` runs a candidate all the same"
            )

    def close(self) -> None:
        """Ends every worker; a workplace that was passed in stays open for others."""
        self._standing.dismiss()
        self._crew.spares.close()
        if self._owns_workplace:
            self._workplace.close()

    def _examine(self, candidate: Candidate, tier: Tier, left_s: Callable[[], float]) -> Evaluation:
        """Examines a candidate, again where the reference worker was lost; lost twice, the candidate is the cause."""
        plan = self._plan(tier)
        lost = ""
        for _ in range(2):
            try:
                return self._sittings.examine(candidate, tier, plan, left_s)
            except ReferenceLost as loss:
                self._standing.lose(loss)
                lost = str(loss)
        try:
            self._standing.engaged()  # raises where the house itself is broken
        except ReferenceLost as loss:
            raise SandboxError(f"no reference worker stays alive: {loss}") from loss
        return self._sittings.recorder.lost(candidate, tier, lost)

    def _plan(self, tier: Tier) -> TierPlan:
        """Returns the plan of a tier, with the draws that tell this task's candidates from trivial answers."""
        plan = PLANS[tier]
        if self._house.large and tier == "attest":
            plan = with_large(plan)
        if self._audit is None or self._audit.verdict != "redrawn":
            return plan
        return with_draws(plan, [name for name in self._audit.counting if name != OWN])


def _barred(seen: Evaluation, reason: str, policy: str) -> Evaluation:
    """Returns the evaluation with the reason why passing shows nothing, as a finding and beside its figures."""
    basis = (seen.basis or Basis(policy=policy)).updated(barred=reason)
    return seen.updated(basis=basis, findings=(*seen.findings, f"the task is barred, so this shows nothing: {reason}"))
