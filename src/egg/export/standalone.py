"""The winner as the file that a user takes away."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from egg.schema.candidate import Candidate
from egg.schema.plan import ScheduleValue


def winner_source(candidate: Candidate) -> str:
    """Returns the candidate's file with its numbers written into the `SCHEDULE` literal.

    Raises ValueError where the candidate has numbers and the file no such literal.
    """
    if not candidate.schedule:
        return candidate.source
    literal = _literal(candidate.source)
    if literal is None:
        raise ValueError(f"candidate {candidate.id} has a schedule, but its file defines no literal SCHEDULE")
    lines = candidate.source.splitlines(keepends=True)
    first, last = literal.lineno - 1, literal.end_lineno or literal.lineno
    return "".join((*lines[:first], _written(candidate.schedule), *lines[last:]))


def _literal(source: str) -> ast.Assign | None:
    for statement in ast.parse(source).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="SCHEDULE")], value=ast.Dict()):
                return statement
            case _:
                continue
    return None


def _written(schedule: Mapping[str, ScheduleValue]) -> str:
    knobs = "".join(f"    {knob!r}: {value!r},\n" for knob, value in schedule.items())
    return f"SCHEDULE = {{\n{knobs}}}\n"
