"""What verifying one candidate against one task gave."""

from __future__ import annotations

from egg.schema.advice import advice
from egg.schema.base import Record
from egg.schema.evaluation import UNKNOWN, Baseline, Evaluation, Status, Trial


class Verification(Record):
    """The verdict about a candidate that somebody else wrote, with everything that it rests on."""

    task: str
    task_hash: str
    workloads: tuple[str, ...]
    training: bool
    """Mode in which both ran."""
    candidate: str
    """What the caller named: a path, a class, or `the given source`."""
    entry: str
    evaluation: Evaluation
    """Of the tier that was asked for; of the tier `search` where the candidate failed there already."""
    baselines: tuple[Baseline, ...] = ()
    """Rungs of the ladder, in the order in which they were asked for; empty where it did not pass."""
    floor_ms: float | None = None
    """Roofline floor of one call, summed over the workloads; None where it could not be worked out."""
    device: str = UNKNOWN
    versions: dict[str, str]
    notes: tuple[str, ...] = ()
    """What was assumed about the task, or could not be worked out."""

    @property
    def passed(self) -> bool:
        """True where every check of the tier was passed."""
        return self.evaluation.status is Status.PASSED

    @property
    def verified(self) -> bool:
        """True where it passed, and the task is not barred: there, trivial answers pass too."""
        return self.passed and not self.evaluation.barred

    @property
    def attested(self) -> bool:
        """True where it passed with fresh workers under the strictest checks; only such figures are published."""
        return self.verified and self.evaluation.tier == "attest"

    @property
    def speedup(self) -> float | None:
        """Speedup over the reference in eager mode: above 1 means that the candidate is faster; None unless passed."""
        return self.evaluation.speedup

    @property
    def claim(self) -> str:
        """What may be said of the speedup over eager: a gain or loss only beyond the noise floor."""
        low, high = self.evaluation.speedup_low, self.evaluation.speedup_high
        if low is None or high is None:
            return "nothing was timed"
        if self.evaluation.barred:
            return f"nothing may be claimed: {self.evaluation.not_claimed}"
        if not self.attested:
            return "nothing is claimed from a search estimate"
        if self.evaluation.not_claimed:
            return f"nothing may be claimed: {self.evaluation.not_claimed}"
        floor_pct = self.evaluation.basis.noise_floor_pct if self.evaluation.basis else None
        within = "" if floor_pct is None else f", beyond the noise floor of {floor_pct:.2g} %"
        if low > 1 + (floor_pct or 0) / 100:
            return f"faster than eager{within}"
        if high < 1 - (floor_pct or 0) / 100:
            return f"slower than eager{within}"
        return "neither faster nor slower than eager" + (
            "" if floor_pct is None else f", with a noise floor of {floor_pct:.2g} %"
        )

    @property
    def failed_trial(self) -> Trial | None:
        """The trial that the candidate failed; None where it passed or failed elsewhere."""
        return next((trial for trial in self.evaluation.trials if not trial.passed), None)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        if not self.passed:
            failure = self.evaluation.failure
            phase = f" in {failure.phase}" if failure else ""
            return f"Not verified: {self.candidate} against {self.task}: {self.evaluation.status}{phase}"
        found = self.evaluation
        gain = f"{found.speedup:.2f}× [{found.speedup_low:.2f}, {found.speedup_high:.2f}] as fast as eager"
        if found.barred:
            return f"Passed a barred task, which shows nothing: {self.candidate} on {self.task}; barred: {found.barred}"
        if self.attested and found.not_claimed:
            return f"Verified: {self.candidate} computes {self.task}; no speedup is claimed"
        if self.attested:
            return f"Verified: {self.candidate} computes {self.task}, {gain}"
        return f"Passed the tier search: {self.candidate} computes {self.task}; search estimate {gain}"

    def explain(self) -> str:
        """Returns the verdict in words: for a failure which input, index, values and limit, and what to look at."""
        claim = (f"{self.claim[:1].upper()}{self.claim[1:]}.",) if self.passed else ()
        return "\n".join((self.headline, *claim, *advice(self.evaluation)))
