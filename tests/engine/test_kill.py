"""One hundred kills with SIGKILL at random moments: nothing finished is repeated, nothing is lost or doubled."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from egg.archive import RunFolder
from egg.schema.run import Event, RunState, fold

KILLS = 100
SCRIPT = Path(__file__).with_name("run_with_fakes.py")


class Runner:
    """A process that starts runs and says how they ended."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, os.fspath(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def go(self, path: Path, seed: int, kill_after_s: float = float("inf")) -> int:
        """Runs or resumes in a new process, kills it unless it is done by then, and returns its exit status."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{path} {seed} {kill_after_s}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture
def runner() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.close()


def recorded(path: Path) -> tuple[list[Event], RunState]:
    """Returns the events of a finished run and its state."""
    state: RunState | None = None
    with RunFolder.read(path) as folder:
        assert folder.warnings == ()
        events = list(folder.events())
    for event in events:
        state = fold(state, event)
    assert state is not None
    return events, state


def finish(runner: Runner, path: Path, seed: int) -> float:
    """Runs to the end undisturbed, and returns the seconds that it took."""
    begin_s = time.monotonic()
    assert runner.go(path, seed) == 0
    return time.monotonic() - begin_s


def kill_until_finished(runner: Runner, path: Path, seed: int, whole_s: float, draw: random.Random) -> tuple[int, int]:
    """Kills the run until it is done before it is killed, and returns the kills and the torn lines."""
    kills = 0
    while (status := runner.go(path, seed, draw.uniform(0.0, whole_s / 5))) != 0:
        assert status == -signal.SIGKILL
        kills += 1
    return kills, len(list(path.glob("torn/*.bin")))


def test_one_hundred_kills_lose_and_double_nothing(runner: Runner, tmp_path: Path) -> None:
    draw = random.Random(20)
    kills = torn = seed = 0
    while kills < KILLS:
        undisturbed, killed = tmp_path / f"whole-{seed}", tmp_path / f"killed-{seed}"
        whole_s = finish(runner, undisturbed, seed)
        more_kills, more_torn = kill_until_finished(runner, killed, seed, whole_s, draw)
        kills, torn = kills + more_kills, torn + more_torn
        expected_events, expected = recorded(undisturbed)
        events, state = recorded(killed)
        assert [e.type for e in events] == [e.type for e in expected_events]
        assert [a.candidate.id for a in state.attempts] == [a.candidate.id for a in expected.attempts]
        assert [a.plan for a in state.attempts] == [a.plan for a in expected.attempts]
        assert [a.verdict for a in state.attempts] == [a.verdict for a in expected.attempts]
        assert [f.candidate_id for f in state.finals] == [f.candidate_id for f in expected.finals]
        assert state.outcome == expected.outcome
        seed += 1
    assert torn > 0, "no kill hit the middle of a line: the test is too tame"
