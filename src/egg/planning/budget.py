"""When to stop: the seconds and attempts that are left, with enough kept back for the final measurements."""

from __future__ import annotations

from statistics import median

from egg.schema.run import RunState

FINALISTS = 3
"""Candidates besides the reference that are measured again, at the most."""
STEPS_EACH = 3
"""So many steps were tried for each of them: a short search ends with a short final."""
FINAL_COST = 3.0
"""A final measurement, in fresh processes and with more calls, takes this many times as long as one of the search."""
RESERVE_SHARE_MAX = 0.5
"""The finals never keep back more than this share of what analysis and baselines left of the budget."""
LEAST_ATTEMPTS = 2
"""The reference and one step are tried however short the seconds are: a run without a step says nothing."""
STRUCTURE_SHARE = 0.6
"""The structure stage takes at most this share of the search, so that something is left to tune with."""
ALLOWANCE_MIN_S, ALLOWANCE_MAX_S = 10.0, 120.0
"""Deadline of one attempt: a slow build must be able to end, a hanging kernel must not take the whole budget."""


def searched(state: RunState) -> RunState:
    """Returns the state as it was when the search ended, before the first final measurement."""
    return state.model_copy(
        update={"finals": (), "spent_s": state.spent_s - sum(f.evaluation.wall_s for f in state.finals)}
    )


def finalists_most(state: RunState) -> int:
    """Returns how many candidates besides the reference are measured again, at the most."""
    return min(FINALISTS, max((len(state.attempts) - 1) // STEPS_EACH, 1))


def reserve_s(state: RunState) -> float:
    """Returns the seconds to keep for the final measurements; 0 without a budget."""
    budget_s = state.started.config.budget_s
    walls = [a.evaluation.wall_s for a in state.attempts if a.effect is not None]
    if budget_s is None or not walls:
        return 0.0
    finals = min(len(walls), finalists_most(state) + 1)
    before_s = state.spent_s - _attempts_s(state)
    return min(finals * FINAL_COST * median(walls), max(RESERVE_SHARE_MAX * (budget_s - before_s), 0.0))


def left_s(state: RunState) -> float | None:
    """Returns the seconds that the search may still take; None without a budget."""
    budget_s = state.started.config.budget_s
    return None if budget_s is None else budget_s - reserve_s(state) - state.spent_s


def _attempts_s(state: RunState) -> float:
    return sum(a.usage.wall_s for a in state.attempts)


def is_spent(state: RunState) -> bool:
    """Returns True where less than half of another attempt would fit, judged by what attempts took so far."""
    most = state.started.config.budget_attempts
    if most is not None and len(state.attempts) >= most:
        return True
    left = left_s(state)
    if left is None or len(state.attempts) < LEAST_ATTEMPTS:
        return False
    return left < median(a.usage.wall_s for a in state.attempts) / 2


def structure_share_is_spent(state: RunState) -> bool:
    """Returns True where the structure stage used up its share of the seconds or of the attempts."""
    most = state.started.config.budget_attempts
    if most is not None and len(state.attempts) > STRUCTURE_SHARE * most:
        return True
    left = left_s(state)
    used_s = _attempts_s(state)
    return left is not None and used_s > STRUCTURE_SHARE * (used_s + left)


def allowance_s(state: RunState) -> float:
    """Returns the deadline of the next attempt in seconds."""
    left = left_s(state)
    return ALLOWANCE_MAX_S if left is None else min(max(left, ALLOWANCE_MIN_S), ALLOWANCE_MAX_S)
