"""Schedule values that the command line puts in, held against the literals of the candidate's file."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from egg.errors import UsageError
from egg.schema.candidate import KnobSpec
from egg.schema.plan import ScheduleValue


def parse_settings(settings: tuple[str, ...]) -> dict[str, str]:
    """Returns name and value of each `NAME=VALUE`. Raises UsageError for another form."""
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {setting!r}: write NAME=VALUE, with a name of SCHEDULE")
        found[name.strip()] = value.strip()
    return found


def override(
    source: str, name: str, settings: Mapping[str, str]
) -> tuple[dict[str, ScheduleValue], dict[str, KnobSpec]]:
    """Returns the schedule values to put in and the space that allows them; both empty without settings.

    Raises UsageError where the file has no such name in its literal SCHEDULE, or SCHEDULE_SPACE allows other values.
    """
    if not settings:
        return {}, {}
    literals = _literals(source)
    own, space = literals.get("SCHEDULE"), literals.get("SCHEDULE_SPACE", {})
    if not isinstance(own, dict):
        raise UsageError(f"{name} has no literal SCHEDULE = {{...}} to set {', '.join(settings)} in")
    values = {k: _value(k, text, own, name) for k, text in settings.items()}
    for knob, value in values.items():
        choices = space.get(knob) if isinstance(space, dict) else None
        if choices is not None and value not in choices:
            raise UsageError(f"--set {knob}={value}: SCHEDULE_SPACE of {name} allows {', '.join(map(str, choices))}")
    allowed = {
        k: KnobSpec(choices=(v,), stage="mapping", principle_id="user", doc="set by hand") for k, v in values.items()
    }
    return values, allowed


def _value(knob: str, text: str, own: dict[Any, Any], name: str) -> ScheduleValue:
    """Returns a value of the type that it replaces."""
    if knob not in own:
        raise UsageError(f"--set {knob}={text}: SCHEDULE of {name} has {', '.join(map(str, own))}")
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    kind = type(own[knob])
    if type(value) is not kind:
        raise UsageError(
            f"--set {knob}={text}: SCHEDULE of {name} holds {own[knob]!r}; give a value of type {kind.__name__}"
        )
    return value


def _literals(source: str) -> dict[str, Any]:
    """Returns the module-level literals SCHEDULE and SCHEDULE_SPACE of a file; what is no literal is left out."""
    found: dict[str, Any] = {}
    for statement in ast.parse(source).body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if name in ("SCHEDULE", "SCHEDULE_SPACE"):
                try:
                    found[name] = ast.literal_eval(value)
                except (ValueError, TypeError):
                    continue
            case _:
                continue
    return found
