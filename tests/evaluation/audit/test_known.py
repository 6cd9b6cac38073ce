"""The shipped list of flawed tasks is sound, and found by suite, level and file."""

from __future__ import annotations

from pathlib import Path

import pytest

from egg.evaluation.audit.known import known_defect, known_defects
from egg.schema.base import content_hash
from egg.testing.factories import make_task

KERNELBENCH = Path(__file__).parents[3] / "third_party" / "KernelBench"
FILTERED = {
    1: {8, 12, 23, 37, 39, 50, 77, 90, 95, 97},
    2: {9, 13, 23, 27, 36, 38, 41, 44, 45, 49, 58, 66, 77, 80, 83, 84, 89, 91, 93, 96},
    3: {3, 5, 7, 11, 12, 18, 28, 32, 34, 35, 45, 46, 47},
}
"""What METR's filtered set leaves out."""


def test_no_task_is_listed_twice() -> None:
    entries = [(d.level, d.number, d.version) for d in known_defects()]
    assert len(set(entries)) == len(entries) > 100


def test_all_that_a_filtered_set_leaves_out_is_listed() -> None:
    listed = {(d.level, d.number) for d in known_defects()}
    assert {(level, number) for level, numbers in FILTERED.items() for number in numbers} <= listed


@pytest.mark.skipif(not KERNELBENCH.is_dir(), reason="third_party/KernelBench is absent")
def test_every_entry_names_a_file_and_its_text() -> None:
    for entry in known_defects():
        path = KERNELBENCH / f"level{entry.level}" / entry.file
        assert path.is_file(), entry
        assert int(entry.file.partition("_")[0]) == entry.number
        assert content_hash(path.read_text()) in (entry.sha256, entry.repaired)


def test_an_entry_is_told_with_its_source_and_with_the_text_that_it_is_of() -> None:
    entry = next(d for d in known_defects() if (d.level, d.number) == (2, 80))
    task = make_task(suite="kernelbench/level2", entry=f"/suite/level2/{entry.file}", source="another text")
    told = known_defect(task)
    assert told is not None
    assert "always exactly 0" in told
    assert "KernelBench#108" in told
    assert "of another text of this file" in told
    assert known_defect(task.updated(suite=None)) is None
    assert known_defect(task.updated(suite="kernelbench/level1")) is None


@pytest.mark.skipif(not KERNELBENCH.is_dir(), reason="third_party/KernelBench is absent")
def test_a_repaired_text_has_no_defect() -> None:
    entry = next(d for d in known_defects() if (d.level, d.number) == (1, 92))
    path = KERNELBENCH / "level1" / entry.file
    task = make_task(suite="kernelbench/level1", entry=str(path), source=path.read_text())
    assert known_defect(task) is None
    assert known_defect(task.updated(source="an older text")) is not None
