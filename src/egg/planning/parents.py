"""Where the next structure step starts: from the best so far, and only for what that does not offer from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from egg.planning.arms import beam
from egg.schema.candidate import Candidate
from egg.schema.plan import Option
from egg.schema.run import RunState


def structure_parents(state: RunState) -> tuple[Candidate, ...]:
    """Returns the candidates to take structure steps from: the best, the heads of the beam, the reference."""
    best = state.best()
    attempts = [*([best] if best is not None else []), *(arm.head for arm in beam(state)), state.attempts[0]]
    return tuple({a.candidate.id: a.candidate for a in attempts}.values())


def structure_options(state: RunState, parent: Candidate, options: Sequence[Option]) -> list[Option]:
    """Returns the structure options that make sense from `parent`, in their order.

    What failed from one parent would fail from another. From any parent but the best, only steps that were never
    taken are worth it: alternatives that the best no longer offers.
    """
    best = structure_parents(state)[0]
    known = {a.plan.option_id for a in state.attempts if a.verdict == "failed" or parent.id != best.id}
    return [o for o in options if o.stage == "structure" and o.id not in known]
