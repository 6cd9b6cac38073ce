"""The shipped list of flawed tasks of public suites."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from egg.schema.audit import KnownDefect
from egg.schema.base import content_hash
from egg.schema.task import Task

_LIST = Path(__file__).with_name("kernelbench.toml")


@cache
def known_defects() -> tuple[KnownDefect, ...]:
    """Returns every entry of the list."""
    content = tomllib.loads(_LIST.read_text(encoding="utf-8"))
    return tuple(KnownDefect.model_validate({"suite": content["suite"], **entry}) for entry in content["tasks"])


def known_defect(task: Task) -> str | None:
    """Returns what the list says about a task, each defect with its source; None where it says nothing.

    An entry is meant by suite, level and file name; where the text is another than the entry speaks of, that is said.
    """
    return (
        "; ".join(_told(entry, content_hash(task.source)) for entry in known_defects() if _is_meant(entry, task))
        or None
    )


def _is_meant(entry: KnownDefect, task: Task) -> bool:
    if task.suite != f"{entry.suite}/level{entry.level}" or Path(task.entry).name != entry.file:
        return False
    return entry.repaired is None or entry.repaired != content_hash(task.source)


def _told(entry: KnownDefect, text_hash: str) -> str:
    other = "" if entry.sha256 in (None, text_hash) else ", of another text of this file"
    return f"{entry.defect} ({entry.source}{other})"
