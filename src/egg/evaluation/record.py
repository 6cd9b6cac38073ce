"""The record that an examination ends in: what was seen, and what it rests on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from egg.evaluation.crew import Crew
from egg.evaluation.desk import CandidateDesk, CandidateFailed
from egg.evaluation.devices.nvml import preflight
from egg.evaluation.examination import Examination
from egg.evaluation.harness import harness_hash
from egg.evaluation.tiers import PLANS
from egg.evaluation.timing.noise import NoiseFloor
from egg.evaluation.workers.environment import KEPT_HEAP_BYTES, SPIN_COUNT
from egg.schema.candidate import Candidate
from egg.schema.evaluation import UNKNOWN, Basis, Evaluation, Failure, Status, Tier, Timing


@dataclass(frozen=True)
class Recorder:
    """Writes the records of one evaluator; its clock fills in `wall_s`."""

    crew: Crew

    def ended(
        self,
        examination: Examination,
        desk: CandidateDesk,
        candidate: Candidate,
        tier: Tier,
        failed: CandidateFailed | None,
        noise: NoiseFloor | None,
    ) -> Evaluation:
        """Returns the record of an examination that came to an end, by itself or with a fault of the candidate."""
        notes = examination.notes
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
            basis=self._basis(notes.timings, desk, noise),
            environment={
                **examination.described,
                **(preflight(self.crew.gpu) if self.crew.config.target == "cuda" else {}),
                **notes.environment,
                **self._environment(tier),
            },
            wall_s=0.0,
        )

    def lost(self, candidate: Candidate, tier: Tier, log: str) -> Evaluation:
        """Returns the record of a candidate under which the reference worker ended again and again."""
        message = "the reference worker ended each time that this candidate ran, and not without it"
        return Evaluation(
            candidate_id=candidate.id,
            tier=tier,
            status=Status.REJECTED,
            failure=Failure(phase="check", message=message, detail=log),
            environment=self._environment(tier),
            wall_s=0.0,
        )

    def _basis(self, timings: Sequence[Timing], desk: CandidateDesk, noise: NoiseFloor | None) -> Basis:
        isolation = desk.worker.isolation
        return Basis(
            policy=self.crew.config.policy,
            timing_method=" and ".join(dict.fromkeys(t.method for t in timings)) or UNKNOWN,
            noise_floor_pct=noise.of(timings) if noise is not None else None,
            isolation=isolation.active,
            missing_isolation=isolation.missing,
            hashes={"task": self.crew.task.content_hash, "harness": harness_hash()},
        )

    def _environment(self, tier: Tier) -> dict[str, str]:
        return {
            "python": sys.version.split()[0],
            "start_method": self.crew.start_method(PLANS[tier].fresh),
            "threads": str(self.crew.config.threads),
            "openmp_spin_count": str(SPIN_COUNT),
            "kept_heap_bytes": str(KEPT_HEAP_BYTES),
            "policy": self.crew.config.policy,
            "mode": "train" if self.crew.task.training else "eval",
        }
