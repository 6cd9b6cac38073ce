"""A candidate from a file, from its text, or from a class whose source can be read. None of it is executed."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from egg.candidates.contract import check_contract, language_of
from egg.candidates.schedule import override
from egg.errors import UsageError
from egg.schema.candidate import Candidate
from egg.schema.task import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn

ENTRY = "ModelNew"
MOST_BYTES = 4 * 2**20
"""A longer file is no kernel's source."""


@dataclass(frozen=True)
class Submission:
    """The source of a candidate and what people call it."""

    name: str
    """Path of the file, name of the class, or `the given source`."""
    source: str
    entry: str = ENTRY
    path: Path | None = None


def read_file(path: Path, entry: str = ENTRY) -> Submission:
    """Returns the submission in a file. Raises UsageError where there is none."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name the Python file that defines {entry}")
    if not path.is_file():
        raise UsageError(f"{path} is not a file: check the path")
    if path.stat().st_size > MOST_BYTES:
        raise UsageError(f"{path} has {path.stat().st_size} bytes; a candidate has at most {MOST_BYTES}")
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read as UTF-8 text: {error}") from error
    return Submission(str(path), source, entry, path.resolve())


def read_text(source: str, entry: str = ENTRY) -> Submission:
    """Returns the submission that is given as text."""
    return Submission("the given source", source, entry)


def read_class(cls: type[nn.Module]) -> Submission:
    """Returns the submission of a class: the whole file that defines it. Raises UsageError where that can't be read."""
    name = cls.__qualname__
    if "." in name:
        raise UsageError(f"{name} is defined inside a function or class: define it at the top level of a file")
    try:
        path = Path(inspect.getfile(cls))
        source = path.read_text(encoding="utf-8")
    except (OSError, TypeError, UnicodeDecodeError) as error:
        raise UsageError(f"the source of {name} can't be read ({error}): give the path of its file") from error
    return Submission(f"{path.name}:{name}", source, name, path.resolve())


def candidate_of(submission: Submission, task: Task, schedule: Mapping[str, str] | None = None) -> Candidate:
    """Returns the submission as a candidate for a task, with schedule values put in by name.

    Raises UsageError where the text alone shows that it can't serve: no Python, no such class, another signature, the
    task itself, a schedule value that is not in its file.
    """
    check_contract(submission.source, submission.name, submission.entry, task)
    if submission.path is not None and str(submission.path) == task.entry and submission.entry == task.class_name:
        raise UsageError(
            f"{submission.name} is the task itself: give the file of the candidate, which defines {submission.entry}"
        )
    values, space = override(submission.source, submission.name, schedule or {})
    return Candidate(
        language=language_of(submission.source),
        entry=submission.entry,
        source=submission.source,
        schedule=values,
        schedule_space=space,
        author="user",
        rationale=f"written by hand: {submission.name}",
    )
