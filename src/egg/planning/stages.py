"""The order of the stages, and what each is for."""

from __future__ import annotations

from egg.planning.gains import steps_since_gain
from egg.schema.principle import Stage
from egg.schema.run import RunState

OBJECTIVES: dict[Stage, str] = {
    "structure": "Do less: remove work and memory traffic by algebra, fusion, layout and loop structure.",
    "mapping": "Keep every core busy: divide the work evenly and with little overhead.",
    "tiling": "Compute from registers and caches: choose the shapes of the blocks.",
    "memory": "Move bytes at full bandwidth: choose widths, staging, stores and reuse of buffers.",
}
TUNING: tuple[Stage, ...] = ("mapping", "tiling", "memory")
PATIENCE: dict[Stage, int] = {"structure": 6, "mapping": 4, "tiling": 4, "memory": 4}
"""A stage ends after this many attempts in a row without gain."""
WORTH_TRYING: dict[Stage, float] = {"structure": 0.97, "mapping": 0.9, "tiling": 0.9, "memory": 0.9}
"""Options that promise less are left to exploring. A cost model tells structures apart better than numbers."""


def structure_is_over(state: RunState) -> bool:
    """Returns True when the structure stage gave way to tuning, or ran out of patience."""
    steps = state.attempts[1:]
    if any(a.plan.stage != "structure" for a in steps):
        return True
    return steps_since_gain(steps) >= PATIENCE["structure"]
