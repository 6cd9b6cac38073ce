"""The structures that a run tries, each with its best candidate so far: the arms of the bandit."""

from __future__ import annotations

from dataclasses import dataclass

from egg.planning.gains import is_gain, steps_since_gain
from egg.planning.stages import PATIENCE, TUNING
from egg.schema.principle import Stage
from egg.schema.run import Attempt, RunState

Structure = tuple[str, ...]


@dataclass(frozen=True)
class Arm:
    """One structure with all attempts that start from it or made it, in order."""

    structure: Structure
    made: tuple[Attempt, ...]
    """Attempts whose candidate has this structure and passed; the first made the structure."""
    tuned: tuple[Attempt, ...]
    """Tuning attempts that started from this structure, whatever came of them."""

    @property
    def speedup(self) -> float:
        """Largest speedup over the reference that the search tier saw."""
        return max(a.effect or 0.0 for a in self.made)

    @property
    def head(self) -> Attempt:
        """The attempt to go on from: the last convincing gain, not a lucky measurement."""
        gains = [a for a in self.made if is_gain(a)]
        return gains[-1] if gains else self.made[0]

    def stages(self) -> tuple[Stage, ...]:
        """Returns the tuning stages in the order in which to go on: the one that it is in, what follows, then again."""
        at = TUNING.index(self.tuned[-1].plan.stage) if self.tuned else 0
        return TUNING[at:] + TUNING[:at]

    def is_stuck(self, stage: Stage) -> bool:
        """Returns True when the last attempts in `stage` brought nothing."""
        return steps_since_gain([a for a in self.tuned if a.plan.stage == stage]) >= PATIENCE[stage]


def arms(state: RunState) -> tuple[Arm, ...]:
    """Returns every structure but the reference's that passed, the fastest first."""
    made: dict[Structure, list[Attempt]] = {}
    tuned: dict[Structure, list[Attempt]] = {}
    structures: dict[str, Structure] = {}
    for attempt in state.attempts:
        structures[attempt.candidate.id] = attempt.candidate.structure
        if attempt.plan.stage in TUNING and attempt.plan.parent_id in structures:
            tuned.setdefault(structures[attempt.plan.parent_id], []).append(attempt)
        if attempt.effect is not None and attempt.candidate.structure:
            made.setdefault(attempt.candidate.structure, []).append(attempt)
    found = [Arm(s, tuple(attempts), tuple(tuned.get(s, ()))) for s, attempts in made.items()]
    return tuple(sorted(found, key=lambda arm: -arm.speedup))


def beam(state: RunState) -> tuple[Arm, ...]:
    """Returns the best structures, as many as the configuration keeps."""
    return arms(state)[: max(state.started.config.beam, 1)]
