"""One examination's assembly: workers as its tier wants them, the setting, the phases, the noise floor."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from egg.evaluation.crew import Crew, Engaged
from egg.evaluation.desk import CandidateDesk, CandidateFailed, ReferenceLost
from egg.evaluation.examination import Examination
from egg.evaluation.house import House
from egg.evaluation.record import Recorder
from egg.evaluation.setting import Setting
from egg.evaluation.standing import StandingReference
from egg.evaluation.tiers import TierPlan
from egg.evaluation.timing.floor import BelowFloor, judge
from egg.evaluation.timing.legs import Undisturbed, quiet_host
from egg.evaluation.timing.noise import NoiseFloor, timed_against_itself
from egg.evaluation.workers.workplace import Worker
from egg.schema.analysis import Analysis
from egg.schema.candidate import Candidate
from egg.schema.evaluation import Evaluation, Failure, Status, Tier


class Sittings:
    """Examines candidates one by one, with what all examinations of one evaluator have in common."""

    def __init__(self, crew: Crew, standing: StandingReference, house: House, analyses: Sequence[Analysis]) -> None:
        self._crew = crew
        self._standing = standing
        self._house = house
        self._analyses = {a.workload: a for a in analyses}
        self._noise: NoiseFloor | None = None
        self.recorder = Recorder(crew)

    def examine(self, candidate: Candidate, tier: Tier, plan: TierPlan, left_s: Callable[[], float]) -> Evaluation:
        """Returns what was seen of a candidate, with workers as its tier wants them; fresh ones start side by side.

        Raises SandboxError, TaskError or ReferenceLost.
        """
        fresh = plan.fresh
        self._crew.health.assure()
        called = self._crew.call_candidate(candidate.id, fresh)
        reference: Engaged | None = None
        twin = self._crew.call_reference(fresh) if fresh and self._noise is None else None
        try:
            reference = self._crew.engage_reference(fresh) if fresh else self._standing.engaged()
            required = self._house.limits.required_isolation if tier == "attest" else ()
            desk = self._crew.engage_candidate(called.worker, left_s, required)
            if self._crew.config.target != "cpu" and not fresh:
                self._crew.spares.prepare()
            setting = self._setting(plan, called.exchange, left_s)
            found = self._examined(Examination(setting, reference, desk, candidate), desk, candidate, tier, twin)
            if self._crew.config.target != "cpu" and not fresh:
                self._rest(reference)
            return found
        finally:
            self._crew.dismiss(called.worker)
            shutil.rmtree(called.exchange, ignore_errors=True)
            if twin is not None:
                self._crew.dismiss(twin)
            if fresh and reference is not None:
                self._crew.dismiss(reference.desk.worker)

    def _rest(self, reference: Engaged) -> None:
        """Has the standing reference worker give up gigabytes that the next workers need. The verdict stands."""
        try:
            reference.desk.ask("rest")
        except ReferenceLost as loss:
            self._standing.lose(loss)

    def _setting(self, plan: TierPlan, folder: Path, left_s: Callable[[], float]) -> Setting:
        house, config = self._house, self._crew.config
        return Setting(
            self._crew.task,
            config.policy,
            plan,
            house.limits,
            folder,
            house.lock_path,
            house.entropy,
            left_s,
            config.target,
            self._crew.gpu or Undisturbed(),
            self._crew.spares.settle,
        )

    def _examined(
        self, examination: Examination, desk: CandidateDesk, candidate: Candidate, tier: Tier, twin: Worker | None
    ) -> Evaluation:
        failed: CandidateFailed | None = None
        try:
            examination.run()
            self._note_floor(examination)
            if twin is not None:
                desk.worker.end()  # nothing more is asked of it, and the twin needs its room on the device
                self._noise = self._against_itself(examination, twin)
            if tier == "attest" and self._noise is not None:
                for timing in examination.notes.timings:
                    if strayed := self._noise.strayed(timing):
                        examination.notes.find(strayed)
                examination.notes.timings = [self._noise.guarded(t) for t in examination.notes.timings]
        except CandidateFailed as fault:
            failed = fault
            if not desk.worker.alive:  # a build may be half written, with its lock taken
                self._crew.forget_builds(candidate.id)
                if fault.device_lost or self._crew.config.target != "cpu":
                    self._crew.health.doubt(f"candidate {candidate.id} ({fault.failure.message})")
        noise = self._noise if tier == "attest" else None
        return self.recorder.ended(examination, desk, candidate, tier, failed, noise)

    def _against_itself(self, examination: Examination, called: Worker) -> NoiseFloor:
        """Returns the noise floor of the attest tier, which one more worker with the reference shows."""
        setting = examination.setting
        twin = self._crew.engage_reference(setting.plan.fresh, called)
        with quiet_host(setting.lock_path):
            return timed_against_itself(setting.task, twin.desk, examination.reference.desk, setting.timer())

    def _note_floor(self, examination: Examination) -> None:
        """Notes a time that looks too short. Raises CandidateFailed for one that the device's limits do not allow."""
        for timing in examination.notes.timings:
            if timing.workload not in self._analyses:
                continue
            try:
                finding = judge(timing.candidate_ms, self._analyses[timing.workload])
            except BelowFloor as error:
                raise CandidateFailed(Status.REJECTED, Failure(phase="time", message=str(error))) from error
            if finding:
                examination.notes.find(finding)
