"""The command line around a machine of fakes: no torch, no workers, no clock."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.kernels import LIAR, RIGHT, TASK

from egg import compose
from egg.planning.planner import RulePlanner
from egg.protocols import Archive, Listener, Machine
from egg.schema.principle import Principle
from egg.schema.run import RunState
from egg.schema.task import Task
from egg.testing import factories as make
from egg.testing.fakes import FakeAnalyst, FakeEvaluator, MemoryArchive, fake_machine


class Fakes:
    """What the fake machine uses; a test may change it."""

    def __init__(self) -> None:
        self.evaluator = FakeEvaluator()
        self.task: Task = make.make_task(name="add one")

    @contextmanager
    def machine(
        self, so_far: RunState, archive: Archive, principles: Sequence[Principle], listeners: Sequence[Listener]
    ) -> Generator[Machine]:
        """Gives a machine of fakes around the archive on disk."""
        planner = RulePlanner()  # the fake author has principles of its own
        yield replace(
            fake_machine(planner, MemoryArchive(), self.evaluator), archive=archive, listeners=tuple(listeners)
        )

    def find_task(self, spec: str, inputs: str | None = None) -> Task:
        """Returns the same task for every name."""
        return self.task


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fakes:
    """A house whose rooms that need torch are fakes, in a folder of its own."""
    fakes = Fakes()
    monkeypatch.setattr(compose, "machine", fakes.machine)
    monkeypatch.setattr(compose, "find_task", fakes.find_task)
    monkeypatch.setattr(compose, "measured_device", make.make_device)
    monkeypatch.setattr(compose, "analyst", FakeAnalyst)
    monkeypatch.setenv("EGG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return fakes


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A working directory with task.py, right.py and liar.py."""
    monkeypatch.setenv("EGG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for name, text in (("task.py", TASK), ("right.py", RIGHT), ("liar.py", LIAR)):
        Path(name).write_text(text)
    return tmp_path
