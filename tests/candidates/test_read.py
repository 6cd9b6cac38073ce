"""Candidates come from a file, a text or a class; the schedule values that are put in have to exist there."""

from pathlib import Path

import pytest
from torch import nn

from egg.candidates.read import candidate_of, read_class, read_file, read_text
from egg.candidates.schedule import override, parse_settings
from egg.errors import UsageError
from egg.testing import factories as make

SOURCE = """from torch import nn

SCHEDULE = {"rows": 8, "mode": "fast"}
SCHEDULE_SPACE = {"rows": [4, 8, 16]}


class ModelNew(nn.Module):
    def forward(self, *args):
        return args[0] + 1
"""


class OfThisFile(nn.Module):
    def forward(self, *args: object) -> object:
        return args[0]


def test_a_file_becomes_a_candidate(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    candidate = candidate_of(read_file(path), make.make_task())
    assert (candidate.source, candidate.entry, candidate.author) == (SOURCE, "ModelNew", "user")
    assert candidate.id == candidate_of(read_text(SOURCE), make.make_task()).id


@pytest.mark.parametrize(("name", "said"), [("none.py", "is not a file"), (".", "is a folder: name the Python file")])
def test_a_path_without_a_file_is_named(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_file(tmp_path / name)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    path = tmp_path / "kernel.so"
    path.write_bytes(b"\x7fELF\xff\xfe")
    with pytest.raises(UsageError, match=r"kernel.so can't be read as UTF-8 text"):
        read_file(path)


def test_the_task_itself_is_no_candidate(tmp_path: Path) -> None:
    path = tmp_path / "task.py"
    path.write_text(SOURCE.replace("ModelNew", "Model"))
    task = make.make_task(kind="file", entry=str(path), class_name="Model")
    with pytest.raises(UsageError, match="is the task itself"):
        candidate_of(read_file(path, "Model"), task)


def test_a_class_is_read_with_its_whole_file() -> None:
    submission = read_class(OfThisFile)
    assert submission.entry == "OfThisFile"
    assert submission.source == Path(__file__).read_text()

    class Inside(nn.Module): ...

    with pytest.raises(UsageError, match="at the top level of a file"):
        read_class(Inside)


def test_a_class_without_a_file_is_named() -> None:
    scope: dict[str, type[nn.Module]] = {}
    exec("from torch import nn\nclass Made(nn.Module): ...", {"__name__": "nowhere"}, scope)
    with pytest.raises(UsageError, match="the source of Made can't be read"):
        read_class(scope["Made"])


def test_schedule_values_are_put_in_by_name() -> None:
    candidate = candidate_of(read_text(SOURCE), make.make_task(), {"rows": "16", "mode": "slow"})
    assert candidate.schedule == {"rows": 16, "mode": "slow"}
    assert candidate.id != candidate_of(read_text(SOURCE), make.make_task()).id


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cols": "8"}, "--set cols=8: SCHEDULE of mine.py has rows, mode"),
        ({"rows": "5"}, "SCHEDULE_SPACE of mine.py allows 4, 8, 16"),
        ({"rows": "many"}, "holds 8; give a value of type int"),
        ({"rows": "True"}, "holds 8; give a value of type int"),
    ],
)
def test_a_schedule_value_that_can_not_be_is_named(settings: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        override(SOURCE, "mine.py", settings)


def test_a_file_without_a_schedule_takes_no_values() -> None:
    with pytest.raises(UsageError, match="has no literal SCHEDULE"):
        override("x = 1\n", "mine.py", {"rows": "8"})
    assert override("x = 1\n", "mine.py", {}) == ({}, {})


def test_settings_are_name_and_value() -> None:
    assert parse_settings(("a=1", " b = x=y")) == {"a": "1", "b": "x=y"}
    with pytest.raises(UsageError, match="write NAME=VALUE"):
        parse_settings(("rows",))
