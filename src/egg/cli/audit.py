"""`egg audit`: can a task tell a good kernel from a trivial answer."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from egg import auditing, compose
from egg.candidates.targets import checked_target
from egg.cli import faults
from egg.errors import UsageError
from egg.schema.audit import AuditOutcome


@dataclass(frozen=True)
class Command:
    """The command line of `egg audit`."""

    task: str
    inputs: str | None
    out: Path | None
    levels: tuple[int, ...]
    device: Literal["cpu", "cuda"]
    jobs: int
    deadline_s: float
    limit_s: float | None
    as_json: bool


def audit(command: Command) -> int:
    """Returns the exit status: 0 all scorable, 1 some barred, 2 some can't be audited, 3 EGG itself failed."""
    _check(command)
    checked_target(command.device)
    subjects = auditing.subjects_of(command.task, command.inputs, command.levels)
    done = {} if command.out is None else auditing.kept(command.out)
    left = [s for s in subjects if (s.name, s.text_hash) not in done]
    found = {s.name: done[s.name, s.text_hash] for s in subjects if s not in left}
    asked = auditing.Asked(
        target=command.device, jobs=command.jobs, deadline_s=command.deadline_s, limit_s=command.limit_s
    )
    console = Console(stderr=True)
    for outcome in auditing.audits(left, asked):
        found[outcome.name] = outcome
        if command.out is not None:
            auditing.keep(command.out, outcome)
        if len(subjects) > 1:
            line = f"{len(found)}/{len(subjects)} {outcome.name}: {_verdict(outcome)}, {outcome.wall_s:.1f} s"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    outcomes = [found[s.name] for s in subjects if s.name in found]
    if command.as_json:
        sys.stdout.write(compose.as_json(_document(outcomes, len(subjects))))
    else:
        _show(outcomes, len(subjects))
    return _status(outcomes)


def _check(command: Command) -> None:
    if command.jobs < 1:
        raise UsageError(f"--jobs {command.jobs}: at least one task runs at a time")
    for name, value in (("--deadline-s", command.deadline_s), ("--limit-s", command.limit_s)):
        if value is not None and not value > 0:
            raise UsageError(f"{name} {value:g}: nothing can be done in no time")
    if command.out is not None and command.out.is_dir():
        raise UsageError(f"--out {command.out} is a folder: name a file, such as {command.out / 'audit.jsonl'}")
    if command.out is not None and not command.out.absolute().parent.is_dir():
        raise UsageError(f"--out {command.out}: there is no folder {command.out.parent}; make it first")


def _status(outcomes: Sequence[AuditOutcome]) -> int:
    """Returns the gravest status of all: a house that failed, then a barred task, then one that can't be audited."""
    if any(o.fault == "house" for o in outcomes):
        return faults.HOUSE
    if any(o.audit is not None and o.audit.verdict == "barred" for o in outcomes):
        return faults.NO_RESULT
    return faults.MISUSE if any(o.fault for o in outcomes) else 0


def _verdict(outcome: AuditOutcome) -> str:
    return outcome.audit.verdict if outcome.audit is not None else f"no verdict ({outcome.fault})"


def _counts(outcomes: Sequence[AuditOutcome]) -> dict[str, int]:
    return dict(sorted(Counter(_verdict(o) for o in outcomes).items()))


def _document(outcomes: Sequence[AuditOutcome], tasks: int) -> dict[str, Any]:
    return {
        "tasks": tasks,
        "counts": _counts(outcomes),
        "versions": compose.versions(),
        "outcomes": [_finite(o.model_dump(mode="json")) for o in outcomes],
    }


def _finite(value: Any) -> Any:
    """Returns the value with numbers that JSON has no form for as text."""
    match value:
        case dict():
            return {k: _finite(v) for k, v in value.items()}
        case list():
            return [_finite(v) for v in value]
        case float() if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        case _:
            return value


def _show(outcomes: Sequence[AuditOutcome], tasks: int) -> None:
    console = Console()
    if len(outcomes) == tasks == 1:
        _show_one(console, outcomes[0])
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("task", "verdict", "why", "known before"):
        table.add_column(name, overflow="fold")
    for outcome in outcomes:
        found = outcome.audit
        why = outcome.message if found is None else "" if found.verdict == "scorable" else found.reason
        table.add_row(*map(Text, (outcome.name, _verdict(outcome), why, (found and found.known_defect) or "")))
    console.print(table)
    counted = ", ".join(f"{n} {verdict}" for verdict, n in _counts(outcomes).items()) or "none"
    console.print(Text(f"{len(outcomes)} of {tasks} tasks: {counted}"))


def _show_one(console: Console, outcome: AuditOutcome) -> None:
    console.print(Text(f"{outcome.name}: {_verdict(outcome)}", "bold"))
    found = outcome.audit
    if found is None:
        console.print(Text(outcome.message))
        return
    console.print(Text(found.reason))
    if found.known_defect:
        console.print(Text(f"Known before: {found.known_defect}"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("trivial answer", "workload", "draws", "outcome", "times the limit"):
        table.add_column(name, justify="right" if name == "times the limit" else "left")
    for probe in found.probes:
        outcome_of = "caught" if probe.caught else "passes" if probe.counts else "passes, no flaw"
        excess = "" if probe.excess is None else f"{probe.excess:.3g}"
        table.add_row(*map(Text, (probe.answer, probe.workload, probe.draws, outcome_of, excess)))
    console.print(table)
