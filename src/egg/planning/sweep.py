"""Which step next: coordinate descent that keeps its direction while that pays, else the most promising step."""

from __future__ import annotations

from collections.abc import Sequence

from egg.planning.gains import is_gain
from egg.planning.stages import WORTH_TRYING
from egg.schema.plan import Option
from egg.schema.run import Attempt

FAILURE_DISCOUNT = 0.95
"""A promise is worth this much of itself for every step of the same move that brought nothing."""


def worth_trying(options: Sequence[Option]) -> list[Option]:
    """Returns the options that promise enough to be tried without exploring."""
    return [o for o in options if o.predicted_effect >= WORTH_TRYING[o.stage]]


def most_promising(options: Sequence[Option], attempts: Sequence[Attempt]) -> Option | None:
    """Returns the option to take next, or None without options.

    `attempts` are those of the same structure. A knob whose last step gained goes first; then by predicted effect,
    where an option that brought nothing before counts for less; the author's own order decides ties.
    """
    last = attempts[-1] if attempts else None
    going = move_of(last.plan.option_id) if last is not None and is_gain(last) else None
    failures = [move_of(a.plan.option_id) for a in attempts if not is_gain(a)]

    def rank(option: Option) -> tuple[bool, float]:
        move = move_of(option.id)
        return move != going, -option.predicted_effect * FAILURE_DISCOUNT ** failures.count(move)

    return min(options, key=rank, default=None)


def move_of(option_id: str | None) -> str:
    """Returns what an option changes: the knob of `knob=value`, else the option itself."""
    return (option_id or "").partition("=")[0]
