"""What the planner asks for, and what an author offers."""

from __future__ import annotations

from egg.schema.base import Record
from egg.schema.principle import Stage

ScheduleValue = int | str | bool


class Option(Record):
    """One step that an author can take from a parent candidate, before it is taken."""

    id: str
    """Unique among the options of one parent and stable across runs: `fuse.row-local`, `k0.lanes=64`."""
    stage: Stage
    principle_id: str
    move: str
    """Name of the move or knob, as `Principle.moves` lists it."""
    title: str
    """What it does, in a few words, for the terminal and the report."""
    predicted_effect: float
    """Predicted speedup over the parent by the author's cost model: 1.3 means 1.3 times as fast."""


class StagePlan(Record):
    """One step: an objective, why it should help, and what may be spent on it."""

    index: int
    """Position among the attempts of the run, from 0."""
    stage: Stage
    objective: str
    hypothesis: str
    principle_ids: tuple[str, ...]
    option_id: str | None = None
    """The option to take; None leaves the choice to the author."""
    predicted_effect: float
    """Predicted speedup over the parent."""
    parent_id: str | None
    """Candidate that it starts from; None for the first."""
    language: str = "cpp"
    allowance_s: float
    """Seconds of wall time that the attempt may take."""
    explores: bool = False
    """True for the share of attempts that ignores the priors."""
