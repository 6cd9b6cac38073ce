"""A candidate that works while the reference is timed is seen in the kernel's accounts, whichever process works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from egg.evaluation.timing.bystander import Bystander, Restless
from egg.evaluation.workers.activity import Activity, activity

T = TypeVar("T")


class FakeFamily:
    """Processes on accounts of their own; `per_block_s` is what they take while somebody else's block runs."""

    def __init__(self, per_block_s: list[float], spins: int = 0) -> None:
        self.per_block_s, self.spins = per_block_s, spins
        self.total_s = 0.0
        self.sleeps = 0

    def read(self) -> Activity:
        return Activity({1: self.total_s}, {1: 0.0}, runnable=self.spins > 0)

    def sleep(self, seconds: float) -> None:
        """Lets threads that spin go on for a while."""
        self.sleeps += 1
        self.spins -= 1
        self.total_s += seconds

    def judged(self) -> None:
        bystander = Bystander(self.read, self.sleep)
        for seconds in self.per_block_s:
            with bystander.watched(lambda: 0.02):
                self.total_s += seconds
        bystander.judge()


@pytest.mark.parametrize(
    ("per_block_s", "honest"),
    [([0.0] * 10, True), ([0.001] * 10, True), ([0.02] * 2 + [0.0] * 8, True), ([0.02] * 3 + [0.0] * 7, False),
     ([0.004] * 10, False), ([], True)],
)  # fmt: skip
def test_working_in_many_blocks_of_the_other_is_no_accident(per_block_s: list[float], honest: bool) -> None:
    if honest:
        FakeFamily(per_block_s).judged()
        return
    with pytest.raises(Restless, match="worked while the reference was timed"):
        FakeFamily(per_block_s).judged()


def test_threads_that_spin_after_a_call_are_waited_for() -> None:
    spinning = FakeFamily([0.0] * 10, spins=40)
    spinning.judged()
    assert spinning.sleeps == 40


def test_what_never_rests_is_not_waited_for_without_end() -> None:
    restless = FakeFamily([0.02] * 10, spins=10**9)
    with pytest.raises(Restless):
        restless.judged()
    assert restless.sleeps <= 200


BURNS = "end = time.thread_time() + 0.2\nwhile time.thread_time() < end: pass\n"
SCRIPTS = {
    "itself": BURNS,
    "a thread": f"threading.Thread(target=lambda: exec({BURNS!r}, globals())).start()\n",
    "a child": f"if os.fork() == 0:\n    exec({BURNS!r})\n    time.sleep(60)\n",
    "a child that has ended": f"if os.fork() == 0:\n    exec({BURNS!r})\n    os._exit(0)\nos.wait()\n",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_the_work_of_a_whole_family_is_seen_from_outside(script: str) -> None:
    text = f"import os, threading, time\nprint(flush=True)\ninput()\n{script}\ntime.sleep(60)\n"
    command = [sys.executable, "-c", text]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.readline()
            at_rest = _once(lambda: activity([process.pid]), lambda seen: not seen.runnable)
            process.stdin.write(b"\n")
            process.stdin.flush()
            spent_s = _once(lambda: activity([process.pid]).since(at_rest), lambda seconds: seconds >= 0.15)
            assert 0.15 <= spent_s < 2  # the kernel counts in hundredths
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_family_without_members_does_nothing() -> None:
    assert activity([]) == Activity()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    assert activity([process.pid]) == Activity()


def _once(look: Callable[[], T], good: Callable[[T], bool]) -> T:
    """Returns what is seen once it is good, or after ten seconds."""
    ends = time.monotonic() + 10
    while not good(seen := look()) and time.monotonic() < ends:
        time.sleep(0.01)
    return seen
