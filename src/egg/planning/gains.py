"""What counts as progress."""

from __future__ import annotations

from collections.abc import Sequence

from egg.schema.run import Attempt


def is_gain(attempt: Attempt) -> bool:
    """Returns True where the attempt was better than the best, or goes on as a structure of its own."""
    return attempt.verdict in ("accepted", "kept")


def steps_since_gain(attempts: Sequence[Attempt]) -> int:
    """Returns how many steps in a row brought nothing; a step and its repairs count once."""
    steps = 0
    for attempt in reversed(attempts):
        if is_gain(attempt):
            break
        steps += attempt.repaired_from is None
    return steps
