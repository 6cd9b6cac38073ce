"""What a measurement is worth: better than the best, worth tuning, or no gain."""

from __future__ import annotations

from egg.planning.arms import Structure, arms
from egg.schema.evaluation import Evaluation
from egg.schema.plan import StagePlan
from egg.schema.run import RunState, Verdict

NOISE_MIN = 0.01
"""Two measurements of one program differ by this share of their speedup even on a quiet machine."""
NOISE_MAX = 0.1
"""On a noisier machine than this, the intervals alone decide."""


def noise_floor(reference: Evaluation | None) -> float:
    """Returns the share by which the reference, measured against itself, was off 1: as a candidate and on its own."""
    if reference is None or reference.speedup_low is None or reference.speedup_high is None:
        return NOISE_MIN
    return max(reference.speedup_high - 1, 1 - reference.speedup_low, measured_floor(reference), NOISE_MIN)


def measured_floor(evaluation: Evaluation) -> float:
    """Returns the noise floor that an evaluation itself rests on, as a share; 0 where none was measured."""
    basis = evaluation.basis
    return (basis.noise_floor_pct or 0.0) / 100 if basis is not None else 0.0


def claims(evaluation: Evaluation, noise: float) -> bool:
    """Returns whether an evaluation says faster: the low end above the noise, and no workload that forbids a claim."""
    return not evaluation.not_claimed and (evaluation.speedup_low or 0.0) > 1 + max(noise, measured_floor(evaluation))


def search_noise(state: RunState) -> float:
    """Returns the noise floor of the search, from attempt 0."""
    reference = state.attempts[0].evaluation if state.attempts else None
    return min(noise_floor(reference), NOISE_MAX)


def beats(evaluation: Evaluation, other: Evaluation, noise: float) -> bool:
    """Returns True where the speedup is larger by more than the noise, and so is the low end. Ties keep the simpler."""
    if evaluation.speedup is None or evaluation.speedup_low is None:
        return False
    if other.speedup is None or other.speedup_low is None:
        return True
    return evaluation.speedup > other.speedup * (1 + noise) and evaluation.speedup_low > other.speedup_low


def judge(state: RunState, plan: StagePlan, evaluation: Evaluation) -> tuple[Verdict, str]:
    """Returns the verdict for the outcome of a plan, and the reason in one sentence."""
    if evaluation.failure is not None:
        return "failed", f"{evaluation.status} in {evaluation.failure.phase}: {evaluation.failure.message}"
    best = state.best()
    if plan.parent_id is None:
        return "accepted", "the task itself, from which the search starts"
    measured = f"{evaluation.speedup:.2f}x over the reference"
    if best is None or beats(evaluation, best.evaluation, search_noise(state)):
        return "accepted", f"{measured}, the best so far" + (f" was {best.effect:.2f}x" if best is not None else "")
    against = f"{measured}, not convincingly above the best of {best.effect:.2f}x"
    if plan.stage == "structure" and _enters_beam(state, evaluation):
        return "kept", f"{against}, but among the structures that go on into tuning"
    if plan.stage != "structure" and _improves_own_structure(state, plan, evaluation):
        return "kept", f"{against}, but the best of its own structure"
    return "rejected", against


def _enters_beam(state: RunState, evaluation: Evaluation) -> bool:
    """Returns True where fewer structures than the beam holds are faster."""
    faster = [arm for arm in arms(state) if arm.speedup >= (evaluation.speedup or 0.0)]
    return len(faster) < max(state.started.config.beam, 1)


def _improves_own_structure(state: RunState, plan: StagePlan, evaluation: Evaluation) -> bool:
    structure: Structure = state.candidate(plan.parent_id or "").structure
    own = next((arm for arm in arms(state) if arm.structure == structure), None)
    return own is None or beats(evaluation, own.head.evaluation, search_noise(state))
