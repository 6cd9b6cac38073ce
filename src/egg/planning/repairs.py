"""When the last attempt is repaired rather than left."""

from __future__ import annotations

from egg.planning import budget
from egg.schema.plan import StagePlan
from egg.schema.run import RunState

REPAIRS_MAX = 2
"""Repairs in a row."""


def repair_plan(state: RunState) -> StagePlan | None:
    """Returns the plan of the last attempt again; None where it passed, is the reference, or was repaired enough."""
    if not state.attempts or budget.is_spent(state):
        return None
    last = state.attempts[-1]
    if last.verdict != "failed" or last.plan.parent_id is None:
        return None
    if any(a.candidate.id == last.candidate.id for a in state.attempts[:-1]):
        return None
    recent = state.attempts[-REPAIRS_MAX:]
    if len(recent) == REPAIRS_MAX and all(a.repaired_from for a in recent):
        return None
    return last.plan.updated(index=len(state.attempts), allowance_s=budget.allowance_s(state))
