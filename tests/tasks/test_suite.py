"""Suites of task files."""

from __future__ import annotations

from pathlib import Path

import pytest

from egg.errors import UsageError
from egg.tasks.find import find_task
from egg.tasks.suite import find_suite

KERNELBENCH = Path(__file__).parents[2] / "third_party" / "KernelBench"


def test_files_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("level1/10_b.py", "level1/2_a.py", "level2/1_c.py", "level1/notes.txt", "level1/__init__.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    names = [str(path.relative_to(tmp_path)) for path in find_suite(tmp_path, (1, 2))]
    assert names == ["level1/2_a.py", "level1/10_b.py", "level2/1_c.py"]


def test_a_missing_level_says_what_a_suite_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="level4' is not a folder"):
        find_suite(tmp_path, (4,))


@pytest.mark.skipif(not KERNELBENCH.is_dir(), reason="third_party/KernelBench is absent")
def test_every_fifth_file_of_kernelbench_loads_at_full_size() -> None:
    paths = find_suite(KERNELBENCH)
    assert len(paths) == 250
    cheap = [path for path in paths if path.parent.name != "level3"]  # whole networks are for the full run
    tasks = [find_task(str(path)) for path in cheap[::5]]
    assert all(task.suite == f"kernelbench/{Path(task.entry).parent.name}" for task in tasks)
    assert all(task.workloads[0].inputs for task in tasks)
