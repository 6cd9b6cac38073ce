"""A few dozen mutated candidates; `run_fuzz.py` makes as many as one asks for."""

from __future__ import annotations

from pathlib import Path

from .run_fuzz import fuzz


def test_the_caller_never_fails_and_always_answers(tmp_path: Path) -> None:
    seen = fuzz(40, 5000, tmp_path)
    assert seen["caller_failures"] == []
    assert seen["processes_left"] == 0
    assert sum(seen["statuses"].values()) == 40  # pyright: ignore
