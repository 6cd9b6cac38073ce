"""The load of others is what the machine's processors did, less what the timed processes and the caller took."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from egg.evaluation.timing.load import Load, Processors, processors
from egg.evaluation.workers.activity import Activity


class FakeMachine:
    """Two processors on a clock of their own."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.busy_s, self.worker_s, self.caller_s = 50.0, 5.0, 1.0

    def load(self, told: bool = True) -> Load:
        def seen() -> Processors | None:
            return Processors(2, self.busy_s) if told else None

        def family() -> Activity:
            return Activity({7: self.worker_s}, {7: 0.0})

        return Load([family], seen, lambda: self.caller_s, lambda: self.now_s)

    def passes(self, seconds: float, others_s: float) -> None:
        self.now_s += seconds
        self.worker_s += 0.5 * seconds
        self.caller_s += 0.1 * seconds
        self.busy_s += 0.6 * seconds + others_s


@pytest.mark.parametrize(("others_s", "pct"), [(0.0, 0.0), (1.0, 25.0), (2.8, 70.0), (-0.1, 0.0)])
def test_own_work_is_no_load_of_others(others_s: float, pct: float) -> None:
    machine = FakeMachine()
    load = machine.load()
    machine.passes(2.0, others_s)
    assert load.others_pct() == pytest.approx(pct)


def test_what_cannot_be_told_is_not_guessed() -> None:
    machine = FakeMachine()
    short, untold = machine.load(), machine.load(told=False)
    machine.passes(0.1, 0.05)
    assert short.others_pct() is None
    machine.passes(2.0, 0.0)
    assert untold.others_pct() is None


def test_the_processors_are_read_from_the_accounts_of_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "stat"
    path.write_text("cpu  100 20 30 9999 7 1 2 40 55 0\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu1 1 1 1 1 1 1 1 1 1 1\nintr 5\n")
    found = processors(path)
    assert found is not None
    assert (found.count, found.busy_s) == (2, pytest.approx(193 / os.sysconf("SC_CLK_TCK")))
    path.write_text("nothing\n")
    assert processors(path) is None
    assert processors(tmp_path / "none") is None
    assert processors() is not None
