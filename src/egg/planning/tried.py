"""Which steps are known already, by their own name or because they lead to a point that was visited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from egg.schema.candidate import Candidate
from egg.schema.plan import Option, ScheduleValue
from egg.schema.run import Attempt

Point = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
"""Structure without order, and schedule: what tells two candidates of one author apart."""


@dataclass(frozen=True)
class Tried:
    """The steps taken and the points visited."""

    steps: frozenset[tuple[str | None, str | None]]
    points: frozenset[Point]
    structures: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, attempts: Iterable[Attempt]) -> Self:
        """Returns what these attempts tried."""
        attempts = tuple(attempts)
        points = [_point(a.candidate.structure, a.candidate.schedule) for a in attempts]
        parents = {a.candidate.id: a.candidate for a in attempts}
        # What a failed step was meant to lead to counts as visited, also where the repair made something else of it.
        meant = [
            _structure(parents[a.plan.parent_id], a.plan.option_id)
            for a in attempts
            if a.plan.stage == "structure" and a.plan.parent_id in parents and a.plan.option_id
        ]
        return cls(
            steps=frozenset((a.plan.parent_id, a.plan.option_id) for a in attempts),
            points=frozenset(points),
            structures=frozenset([*(structure for structure, _ in points), *meant]),
        )

    def new(self, parent: Candidate, options: Sequence[Option]) -> list[Option]:
        """Returns the options from `parent` that were not tried, in their order."""
        return [o for o in options if (parent.id, o.id) not in self.steps and not self._is_known(parent, o)]

    def _is_known(self, parent: Candidate, option: Option) -> bool:
        if option.stage == "structure":
            return _structure(parent, option.id) in self.structures
        knob, _, value = option.id.partition("=")
        return _point(parent.structure, {**parent.schedule, knob: value}) in self.points


def _structure(parent: Candidate, option_id: str) -> tuple[str, ...]:
    return tuple(sorted((*parent.structure, option_id)))


def _point(structure: tuple[str, ...], schedule: dict[str, ScheduleValue]) -> Point:
    return tuple(sorted(structure)), tuple(sorted((knob, str(value)) for knob, value in schedule.items()))
