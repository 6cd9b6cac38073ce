"""A Python file that defines `ModelNew`."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from egg.schema.base import Record, canonical_json, content_hash
from egg.schema.plan import ScheduleValue
from egg.schema.principle import Stage


class KnobSpec(Record):
    """One dimension of a schedule space."""

    choices: tuple[ScheduleValue, ...] = Field(min_length=1)
    """Ordered, so that neighbours in the list are neighbours in the space."""
    stage: Stage
    """The tuning step that owns it: mapping, tiling or memory."""
    principle_id: str
    doc: str

    def neighbours(self, value: ScheduleValue) -> tuple[ScheduleValue, ...]:
        """Returns the choices next to `value`, nearest first, the larger one before the smaller."""
        at = self.choices.index(value)
        return tuple(self.choices[i] for i in (at + 1, at - 1) if 0 <= i < len(self.choices))


class Candidate(Record):
    """One version of the task, identified by its content."""

    language: str
    """`torch` for the reference, `cpp`, `triton`, `cuda`."""
    entry: str = "ModelNew"
    flags: tuple[str, ...] = ()
    source: str
    """The whole file. Module-level literals `SCHEDULE` and `SCHEDULE_SPACE` hold the numbers."""
    schedule: dict[str, ScheduleValue] = Field(default_factory=dict)
    schedule_space: dict[str, KnobSpec] = Field(default_factory=dict)
    structure: tuple[str, ...] = ()
    """Ids of the structure options that led here, in order."""
    parent_ids: tuple[str, ...] = ()
    stage: Stage = "structure"
    author: str
    rationale: str
    predicted_ms: float | None = None
    """The author's own cost model, for one call on the first workload."""
    not_covered: tuple[str, ...] = ()
    """Operators that stay library or torch calls, with the reason: `aten.sort.stable: no family`."""

    @property
    def id(self) -> str:
        """Identity by content: language, entry point, flags, source and schedule."""
        return content_hash(self.language, self.entry, *self.flags, self.source, canonical_json(self.schedule))

    @model_validator(mode="after")
    def _schedule_in_space(self) -> Self:
        for knob, value in self.schedule.items():
            spec = self.schedule_space.get(knob)
            if spec is None or value not in spec.choices:
                allowed = "no such knob" if spec is None else f"choose one of {list(spec.choices)}"
                raise ValueError(f"schedule {knob}={value!r}: {allowed}")
        return self
