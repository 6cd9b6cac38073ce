"""Who is measured again, and who wins."""

from __future__ import annotations

from egg.planning import budget
from egg.planning.acceptance import claims, noise_floor
from egg.schema.evaluation import Status
from egg.schema.run import FinalMeasured, Outcome, RunState

NEAR = 0.85
"""Below this share of the best speedup of the search, nobody overtakes in the finals."""


def finalists(state: RunState) -> tuple[str, ...]:
    """Returns the ids of the fastest candidates that beat the reference in the search, then the reference."""
    reference = state.attempts[0].candidate.id
    effects = {a.candidate.id: a.effect for a in state.attempts[1:] if a.effect and a.candidate.id != reference}
    least = max(1.0, NEAR * max(effects.values(), default=0.0))
    fastest = sorted((name for name, effect in effects.items() if effect > least), key=lambda name: -effects[name])
    return (*fastest[: budget.finalists_most(state)], reference)


def outcome(state: RunState, interrupted: bool) -> Outcome:
    """Returns how the run ended, from the final measurements alone.

    The winner is the fastest that passed and is faster than the reference by more than its measurement against itself
    was off; without one it is the reference.
    """
    reference = state.attempts[0].candidate.id
    own = next(f for f in state.finals if f.candidate_id == reference)
    others = [f for f in state.finals if f.candidate_id != reference and f.evaluation.status is Status.PASSED]
    faster = [f for f in others if claims(f.evaluation, noise_floor(own.evaluation))]
    winner = max(faster, key=lambda f: f.evaluation.speedup or 0.0, default=own)
    spent = budget.is_spent(budget.searched(state))
    return Outcome(
        winner_id=winner.candidate_id,
        verified=winner.evaluation.status is Status.PASSED,
        faster=winner is not own,
        summary=_summary(state, winner, own),
        stopped_by="interrupted" if interrupted else "budget" if spent else "done",
    )


def _summary(state: RunState, winner: FinalMeasured, own: FinalMeasured) -> str:
    evaluation = winner.evaluation
    if winner is not own:
        return f"{evaluation.speedup:.2f}x over eager ({evaluation.speedup_low:.2f} to {evaluation.speedup_high:.2f})"
    if own.evaluation.failure is not None:
        failure = own.evaluation.failure
        return f"the task itself did not pass: {own.evaluation.status} in {failure.phase}: {failure.message}"
    if refused := [f.evaluation.not_claimed for f in state.finals if f is not own and f.evaluation.not_claimed]:
        return f"no speedup is claimed: {refused[0]}"
    if len(state.attempts) == 1:
        return "no step applies to this task, so it stays as it was"
    passed = sum(a.effect is not None for a in state.attempts[1:])
    if passed == 0:
        return f"nothing to gain: none of {len(state.attempts) - 1} attempts passed"
    return f"nothing to gain: none of {len(state.attempts) - 1} attempts was reliably faster than eager"
