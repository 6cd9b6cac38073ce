"""The task files of a suite laid out as KernelBench is: `level1/1_name.py`, `level1/2_name.py`, ..."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from egg.errors import UsageError


def find_suite(root: Path, levels: Sequence[int] = (1, 2, 3)) -> list[Path]:
    """Returns the task files of the levels, in order of level and number. Raises UsageError for a missing folder."""
    found: list[Path] = []
    for level in levels:
        folder = root / f"level{level}"
        if not folder.is_dir():
            raise UsageError(f"{str(folder)!r} is not a folder; a suite has level1, level2, ... with one file a task")
        found += sorted((p for p in folder.glob("*.py") if not p.name.startswith("_")), key=_natural)
    return found


def _natural(path: Path) -> tuple[tuple[int, str], ...]:
    """Returns a key that sorts runs of digits by their value."""
    parts = re.findall(r"\d+|\D+", path.name)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)
