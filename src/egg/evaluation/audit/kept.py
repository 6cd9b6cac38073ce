"""Verdicts of audits that are kept between evaluators: one file a task, policy and version of the check."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import ValidationError

from egg.schema.audit import Audit
from egg.schema.base import content_hash
from egg.schema.task import Task

_EVALUATION = Path(__file__).parents[1]


class KeptAudits:
    """The verdicts in a folder under one policy."""

    def __init__(self, folder: Path, policy: str) -> None:
        self._folder = folder
        self._policy = policy

    def find(self, task: Task) -> Audit | None:
        """Returns the kept verdict; None where there is none, or its file can't be read."""
        try:
            return Audit.model_validate_json(self._path(task.content_hash).read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            return None

    def keep(self, found: Audit) -> None:
        """Stores a verdict; the file is whole or not there."""
        path = self._path(found.content_hash)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(found.model_dump_json(), encoding="utf-8")
        part.replace(path)

    def _path(self, task_hash: str) -> Path:
        return self._folder / f"{content_hash(task_hash, self._policy, _check_hash())}.json"


@cache
def _check_hash() -> str:
    """Returns the hash of the text of this package's evaluation code: another check, another verdict."""
    files = sorted((*_EVALUATION.rglob("*.py"), *_EVALUATION.rglob("*.toml")))
    return content_hash(*(part for f in files for part in (str(f.relative_to(_EVALUATION)), f.read_bytes())))
