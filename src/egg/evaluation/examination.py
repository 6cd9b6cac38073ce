"""One evaluation of one candidate: build, check, time, profile, in this order and only as far as it passes."""

from __future__ import annotations

import shutil
from random import Random
from typing import Any

from egg.errors import SandboxError
from egg.evaluation.checks import Checks, emptied
from egg.evaluation.crew import Engaged, difference_in_settings
from egg.evaluation.desk import CandidateDesk, CandidateFailed
from egg.evaluation.setting import Notes, Setting
from egg.evaluation.timing.bystander import Restless
from egg.evaluation.timing.figures import ImpossibleTimes, Timed
from egg.evaluation.timing.legs import TimedLeg, quiet_host, time_legs
from egg.evaluation.timing.proof import DrawnProof, NotReal
from egg.schema.candidate import Candidate
from egg.schema.evaluation import Failure, KernelShare, Status, Timing
from egg.schema.task import Workload

_PROFILED_CALLS, _SLOW_MS = 3, 50.0
_PROOF_ELEMENTS = 4096
_REPLAYED_CALLS = 50


class Examination:
    """Leads one candidate through its phases. `notes` holds what was seen, also when a phase fails."""

    def __init__(self, setting: Setting, reference: Engaged, desk: CandidateDesk, candidate: Candidate) -> None:
        self.notes = Notes()
        self.described = reference.described
        self.setting = setting
        self.reference = reference
        self._desk = desk
        self._candidate = candidate
        self._folder = str(setting.folder)
        self._closer = False

    def run(self) -> None:
        """Runs all phases. Raises CandidateFailed, and for other faults what `ReferenceDesk.ask` raises."""
        self._build()
        for workload in self.setting.task.workloads:
            self._check(workload)
        self.setting.settle()
        for workload in self.setting.task.workloads:
            self._time(workload)

    def _share_memory(self) -> None:
        """Has tensors stay on the device on their way, where each worker can map the other's memory."""
        reference, desk = self.reference.desk, self._desk
        there = desk.ask("transfer", "accept", offered=reference.ask("offer").get("offered"))
        back = reference.ask("accept", offered=desk.ask("transfer", "offer").get("offered"))
        on = there.get("mapped") is back.get("mapped") is True
        reference.ask("share", on=on)
        desk.ask("transfer", "share", on=on)
        self.notes.environment["tensors_travel"] = "within the device" if on else "as files"

    def _build(self) -> None:
        if self.setting.target != "cpu":
            self._share_memory()
        candidate, task = self._candidate, self.setting.task
        flags = self._desk.ask("import", "settle", policy=self.setting.policy)["flags"]
        if unlike := difference_in_settings(flags, self.reference.flags):
            raise SandboxError(f"in the candidate's worker {unlike}, the reference's: their figures would not compare")
        # The constructor's arguments lie in the reference's folder, which a candidate does not reach.
        shutil.copytree(self.reference.folder, self.setting.folder, dirs_exist_ok=True)
        seen = self._desk.ask("import", "inspect", source=candidate.source)["sightings"]
        self._closer = bool(seen)
        for sighting in seen:
            self.notes.find(f"in the text, {sighting}")
        self._desk.ask(
            "import", "import", source=candidate.source, name=f"candidate_{candidate.id}", schedule=candidate.schedule
        )
        self._desk.ask(
            "construct", "construct",
            entry=candidate.entry, init=self.reference.init, folder=self._folder,
            seed=self.reference.seed, training=task.training,
        )  # fmt: skip

    def _check(self, workload: Workload) -> None:
        checks = Checks(self.setting, self.reference, self._desk, self.notes, self._closer)
        checks.run(workload)

    def _time(self, workload: Workload) -> None:
        setting, reference, desk = self.setting, self.reference.desk, self._desk
        seeds = [setting.entropy() for _ in range(setting.plan.pool)]
        pool = reference.pool(setting.folder, workload.name, seeds)
        desk.ask("transfer", "pool", folder=self._folder, **pool)
        worker, other = desk.worker, reference.worker
        mine = TimedLeg("candidate", self._ask_timed, lambda: worker.last_ask_s, worker.activity, watched=True)
        theirs = TimedLeg("reference", reference.ask, lambda: other.last_ask_s, other.activity)
        proof = self._proof()
        with quiet_host(setting.lock_path) as lock:
            self.notes.environment["timing_lock"] = lock
            try:
                timed = time_legs(mine, theirs, setting.timer(), proof)
            except (ImpossibleTimes, NotReal, Restless) as error:
                raise CandidateFailed(Status.REJECTED, Failure(phase="time", message=str(error))) from error
        found = _timing(workload, timed, 1e3 * desk.setup_s, proof.calls)
        if found.launch_bound:
            found = self._with_replay(found)
        self.notes.timings.append(found)
        calls = _PROFILED_CALLS if found.candidate_ms < _SLOW_MS else 1
        told = desk.ask("time", "profile", inputs=pool["pool"][0], folder=self._folder, calls=calls)
        self._note_authorship(told)
        emptied(setting.folder)

    def _with_replay(self, timing: Timing) -> Timing:
        """Adds the figures of calls replayed from a graph, which say more of the kernels of a launch-bound call."""
        told = [desk("replay", calls=_REPLAYED_CALLS).get("ns") for desk in (self._ask_timed, self.reference.desk.ask)]
        mine, theirs = (ns / 1e6 if type(ns) is int and ns > 0 else None for ns in told)
        return timing.updated(graph_ms=mine, reference_graph_ms=theirs)

    def _ask_timed(self, op: str, **fields: object) -> dict[str, Any]:
        return self._desk.ask("time", op, **fields)

    def _proof(self) -> DrawnProof:
        setting, reference, desk = self.setting, self.reference.desk, self._desk
        return DrawnProof(
            lambda op, **f: desk.ask("transfer", op, **f), reference.ask, setting.folder, Random(setting.entropy()),
            setting.plan.proof_calls, setting.plan.proof_whole, _PROOF_ELEMENTS,
        )  # fmt: skip

    def _note_authorship(self, told: dict[str, Any]) -> None:
        """Keeps the figures of the slowest workload, which is the one to look at, and what looked odd in any."""
        try:
            kernels = tuple(KernelShare.model_validate(kernel) for kernel in told["kernels"])
            metrics = {str(name): float(value) for name, value in told["metrics"].items()}
            findings = [str(finding) for finding in told["findings"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"what the candidate tells of its kernels can't be read: {error}".splitlines()[0]
            raise CandidateFailed(Status.REJECTED, Failure(phase="time", message=said)) from error
        for finding in findings:
            self.notes.find(finding)
        slowest = max(self.notes.timings, key=lambda t: t.candidate_ms)
        if slowest is self.notes.timings[-1]:
            self.notes.profile = {**metrics, "setup_ms": 1e3 * self._desk.setup_s}
            self.notes.kernels = kernels


def _timing(workload: Workload, timed: Timed, setup_ms: float, checked_calls: int) -> Timing:
    found = timed.comparison
    return Timing(
        workload=workload.name,
        method=timed.method,
        candidate_ms=found.first.median_ms,
        candidate_p10_ms=found.first.p10_ms,
        candidate_p90_ms=found.first.p90_ms,
        reference_ms=found.second.median_ms,
        reference_p10_ms=found.second.p10_ms,
        reference_p90_ms=found.second.p90_ms,
        speedup=found.ratio,
        speedup_low=found.low,
        speedup_high=found.high,
        blocks=found.pairs,
        calls=found.first.calls,
        setup_ms=setup_ms,
        discarded=timed.discarded,
        no_claim=timed.no_claim,
        launch_bound=timed.launch_bound,
        chained=timed.chained,
        checked_calls=checked_calls,
        others_pct=timed.others_pct,
    )
