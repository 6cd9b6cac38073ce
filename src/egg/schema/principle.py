"""What experts know, as data."""

from __future__ import annotations

from typing import Literal

from egg.schema.base import Record

Stage = Literal["structure", "mapping", "tiling", "memory"]
STAGES: tuple[Stage, ...] = ("structure", "mapping", "tiling", "memory")


class Predicate(Record):
    """One condition on a named fact."""

    fact: str
    op: Literal["==", "!=", "<", "<=", ">", ">=", "in"]
    value: bool | int | float | str | tuple[str, ...]


class Evidence(Record):
    """A measurement that backs a principle."""

    what: str
    device: str
    date: str
    gain: float | None = None
    """Speedup measured over the same candidate without it."""


class Principle(Record):
    """One rule of an expert: when it applies, what to do, what to expect."""

    id: str
    stage: Stage
    title: str
    applies_when: tuple[Predicate, ...] = ()
    """All must hold; none means always."""
    action: str
    """Words for a person or a model."""
    moves: tuple[str, ...] = ()
    """Names of moves of the built-in author, or of schedule knobs for the sweep."""
    expects: str
    """Metric and direction: `dram bytes down`."""
    languages: tuple[str, ...] = ("cpp", "triton", "cuda")
    sources: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
