"""The winner as one Python file."""

from __future__ import annotations

import ast

from egg.schema.candidate import Candidate

SCHEDULE = "SCHEDULE"


def standalone(candidate: Candidate) -> str:
    """Returns the candidate's file with its schedule written into the literal `SCHEDULE`."""
    if not candidate.schedule:
        return candidate.source
    literal = _literal(candidate.source)
    lines = candidate.source.splitlines(keepends=True)
    entries = "".join(f"    {knob!r}: {value!r},\n" for knob, value in candidate.schedule.items())
    text = f"{SCHEDULE} = {{\n{entries}}}\n"
    if literal is None:
        return f"{candidate.source.rstrip()}\n\n{text}"
    return "".join([*lines[: literal.lineno - 1], text, *lines[literal.end_lineno :]])


def _literal(source: str) -> ast.stmt | None:
    """Returns the statement that assigns SCHEDULE at the top level of the file."""
    for statement in ast.parse(source).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        if any(isinstance(target, ast.Name) and target.id == SCHEDULE for target in targets):
            return statement
    return None
