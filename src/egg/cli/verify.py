"""`egg verify`: is this kernel right, and how fast is it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from egg import compose, request
from egg.candidates.read import candidate_of, read_file
from egg.candidates.targets import target_of
from egg.cli import faults
from egg.errors import UsageError
from egg.reports.verification import verification_data, verification_table
from egg.verification import Asked, Verifier, check_ladder

if TYPE_CHECKING:
    from egg.candidates.targets import AskedTarget
    from egg.schema.evaluation import Tier
    from egg.schema.task import Policy


@dataclass(frozen=True)
class Command:
    """The command line of `egg verify`."""

    candidate: Path
    task: str
    inputs: str | None
    entry: str
    policy: Policy
    tier: Tier
    target: AskedTarget
    ladder: tuple[str, ...] | None
    trusted: bool
    large: bool
    barred_ok: bool
    out: Path | None
    as_json: bool


def verify(command: Command) -> int:
    """Returns the exit status of a verification. What can be wrong is found before any candidate runs."""
    request.check_policy(command.policy)
    check_out(command.out)
    ladder = check_ladder(command.ladder)
    submission = read_file(command.candidate, command.entry)
    target_of(command.target, submission.source)
    task = compose.find_task(command.task, command.inputs)
    candidate = candidate_of(submission, task)
    with Verifier() as verifier:
        asked = Asked(
            command.policy, command.tier, ladder, command.trusted, command.target, command.large, command.barred_ok
        )
        found = verifier.verify(task, candidate, submission.name, asked)
    document = compose.as_json(verification_data(found))
    if command.out is not None:
        command.out.write_text(document, encoding="utf-8")
    if command.as_json:
        sys.stdout.write(document)
    else:
        Console().print(verification_table(found))
    return 0 if found.verified else faults.NO_RESULT


def check_out(path: Path | None) -> None:
    """Raises UsageError where a file can't be written at `path`."""
    if path is not None and path.is_dir():
        raise UsageError(f"--out {path} is a folder: name a file, such as {path / 'verification.json'}")
    if path is not None and not path.absolute().parent.is_dir():
        raise UsageError(f"--out {path}: there is no folder {path.parent}; make it first")
