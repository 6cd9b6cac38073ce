"""`egg bench`: times kernels side by side, each only after it was found right."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from egg import compose, request
from egg.candidates.read import candidate_of, read_file
from egg.candidates.schedule import parse_settings
from egg.candidates.targets import checked_target
from egg.cli import faults
from egg.errors import UsageError
from egg.reports.bench import bench_data, bench_table
from egg.verification import Asked, Verifier, check_ladder

if TYPE_CHECKING:
    from egg.candidates.targets import AskedTarget
    from egg.schema.evaluation import Tier
    from egg.schema.task import Policy


@dataclass(frozen=True)
class Command:
    """The command line of `egg bench`."""

    candidates: tuple[Path, ...]
    task: str
    inputs: str | None
    entry: str
    settings: tuple[str, ...]
    policy: Policy
    tier: Tier
    target: AskedTarget
    ladder: tuple[str, ...] | None
    trusted: bool
    barred_ok: bool
    as_json: bool


def bench(command: Command) -> int:
    """Returns the exit status: 0 where every candidate was right and timed, on a task that is not barred."""
    if not command.candidates:
        raise UsageError("name at least one candidate: a Python file that defines ModelNew")
    request.check_policy(command.policy)
    settings = parse_settings(command.settings)
    ladder = check_ladder(command.ladder)
    asked = Asked(command.policy, command.tier, ladder, command.trusted, command.target, barred_ok=command.barred_ok)
    if command.target != "auto":
        checked_target(command.target)
    submissions = [read_file(path, command.entry) for path in command.candidates]
    task = compose.find_task(command.task, command.inputs)
    candidates = [candidate_of(submission, task, settings) for submission in submissions]
    with Verifier() as verifier:
        found = [
            verifier.verify(task, candidate, submission.name, asked)
            for candidate, submission in zip(candidates, submissions, strict=True)
        ]
    if command.as_json:
        sys.stdout.write(compose.as_json(bench_data(found, settings)))
    else:
        Console().print(bench_table(found))
    return 0 if all(f.verified for f in found) else faults.NO_RESULT
