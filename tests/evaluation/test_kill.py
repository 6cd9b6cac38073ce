"""Candidates that hang, crash or leave something behind: no process stays, no slot is lost, the next is unaffected."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from egg.evaluation.evaluator import House, LocalEvaluator
from egg.evaluation.tiers import Limits
from egg.evaluation.workers.local import LocalWorkplace
from egg.schema.evaluation import Evaluation, Status
from egg.schema.run import Config
from egg.tasks.find import find_task

from .conftest import PREAMBLE, candidate_of, model

DEADLINE_S = 1.5
FORWARD = "return x * 2"
STUBBORN = "import os, signal, subprocess, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
GRANDCHILD = STUBBORN + "def leave():\n    subprocess.Popen(['sleep', '1000'])\n"
DAEMON = STUBBORN + (
    "def leave():\n"
    "    if os.fork() == 0:\n"
    "        os.setsid()\n"
    "        if os.fork() == 0:\n"
    "            signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "            os.execvp('sleep', ['sleep', '1000'])\n"
    "        os._exit(0)\n"
)
HANG = "time.sleep(600)"
DELETED = "class Kept:\n    def __del__(self):\n        time.sleep(600)\n"


@dataclass(frozen=True)
class Case:
    """A candidate that does harm, and what must be said of it."""

    name: str
    source: str
    statuses: tuple[Status, ...]


TIMEOUT, ERROR, PASSED = (Status.TIMEOUT,), (Status.RUNTIME_ERROR,), (Status.PASSED,)
ENDED = (Status.RUNTIME_ERROR, Status.TIMEOUT, Status.OUT_OF_MEMORY)
DEEP = """
import sys
sys.setrecursionlimit(10**9)
class Deep:
    def __repr__(self):
        return repr([self])
def f(x):
    return repr(Deep())
"""
CASES = [
    Case("hang in import", model(FORWARD, before=f"{STUBBORN}{HANG}\n"), TIMEOUT),
    Case("hang in constructor", model(FORWARD, HANG, STUBBORN), TIMEOUT),
    Case("hang in forward", model(HANG, before=STUBBORN), TIMEOUT),
    Case("hang in a loop of C", model("sum(iter(int, 1))\nreturn x", before=STUBBORN), TIMEOUT),
    Case("hang in __del__", model(f"Kept()\n{FORWARD}", before=STUBBORN + DELETED), TIMEOUT),
    Case("hang in a later __del__", model(FORWARD, "self.kept = Kept()", STUBBORN + DELETED), PASSED),
    Case("hang after a stop", model("os.kill(0, signal.SIGSTOP)\ntime.sleep(600)", before=STUBBORN), TIMEOUT),
    Case("grandchild with the pipe", model(f"leave()\n{HANG}", before=GRANDCHILD), TIMEOUT),
    Case("grandchild and an exit", model("leave()\nos._exit(0)", before=GRANDCHILD), ERROR),
    Case("grandchild and a right answer", model(FORWARD, "leave()", GRANDCHILD), PASSED),
    Case("daemon and a hang", model(f"leave()\n{HANG}", before=DAEMON), TIMEOUT),
    Case("daemon and an exit", model("leave()\nos._exit(0)", before=DAEMON), ERROR),
    Case("daemon and a right answer", model(FORWARD, "leave()", DAEMON), PASSED),
    Case("exit in import", model(FORWARD, before="import os\nos._exit(0)\n"), ERROR),
    Case("exit in constructor", model(FORWARD, "os._exit(0)", "import os\n"), ERROR),
    Case("exit in forward", model("os._exit(0)", before="import os\n"), ERROR),
    Case("segmentation fault", model("ctypes.string_at(0)\nreturn x", before="import ctypes\n"), ERROR),
    Case("abort", model("os.abort()", before="import os\n"), ERROR),
    Case("endless recursion", model("def f(): return f()\nreturn f()"), ERROR),
    Case("recursion past the stack", model("return f(x)", before=DEEP), ENDED),
    Case("memory hog", model("return [torch.empty(2**26).fill_(1) for _ in range(4000)]"), ENDED),
    Case(
        "exception with two arguments",
        model("raise Two(1, 2)", before="class Two(Exception):\n    def __init__(self, a, b): super().__init__(a)\n"),
        ERROR,
    ),
    Case("sleeping atexit", model(FORWARD, before="import atexit, time\natexit.register(time.sleep, 600)\n"), PASSED),
    Case(
        "threads that never end",
        model(
            FORWARD,
            "[threading.Thread(target=time.sleep, args=(600,)).start() for _ in range(20)]",
            "import threading, time\n",
        ),
        (Status.PASSED, Status.REJECTED),
    ),
]


@pytest.fixture(scope="module")
def evaluator(workplace: LocalWorkplace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEvaluator]:
    """One evaluator with short deadlines for all cases, its reference worker warm."""
    folder = tmp_path_factory.mktemp("kill")
    path = folder / "task.py"
    path.write_text(
        f"{PREAMBLE}\nclass Model(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
        "def get_inputs():\n    return [torch.randn(16, 300)]\n"
    )
    deadlines = {phase: 20.0 if phase == "time" else DEADLINE_S for phase in Limits().deadline_s}
    house = House(limits=Limits(deadline_s=deadlines, memory_share=0.1), lock_path=folder / "lock")
    made = LocalEvaluator(find_task(str(path)), Config(threads=1), folder / "work", (), house, workplace)
    assert judged(made, model(FORWARD)).status is Status.PASSED
    yield made
    made.close()


def judged(evaluator: LocalEvaluator, source: str) -> Evaluation:
    return evaluator.evaluate(candidate_of(source), "search", 60)


def processes(workplace: LocalWorkplace) -> set[int]:
    """Returns everything that descends from this process and still runs."""
    found: set[int] = set()
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_is_left_and_nothing_is_lost(evaluator: LocalEvaluator, workplace: LocalWorkplace, case: Case) -> None:
    """BR-26, among others."""
    before = processes(workplace)
    folders = set((evaluator._crew._workdir / "workers").iterdir())  # pyright: ignore[reportPrivateUsage]
    started = time.monotonic()
    seen = judged(evaluator, case.source)
    wall_s = time.monotonic() - started
    assert seen.status in case.statuses, seen.failure
    if seen.status is not Status.PASSED:  # timing takes as long as it takes
        assert wall_s < DEADLINE_S + 10  # far below the 600 s that it would hang
    assert processes(workplace) <= before
    assert set((evaluator._crew._workdir / "workers").iterdir()) <= folders  # pyright: ignore[reportPrivateUsage]


def test_the_next_candidate_is_unaffected(evaluator: LocalEvaluator) -> None:
    assert judged(evaluator, model("return x + x")).status is Status.PASSED


def test_the_slots_of_others_stay_free(workplace: LocalWorkplace, evaluator: LocalEvaluator, tmp_path: Path) -> None:
    """BR-25. Of three at once one hangs: the others get their results, and all is over soon after its deadline."""
    made: list[LocalEvaluator] = []
    for number in range(3):
        limits = Limits(deadline_s={phase: 3.0 if phase != "time" else 20.0 for phase in Limits().deadline_s})
        house = House(limits=limits, lock_path=tmp_path / "lock")
        task = evaluator._task  # pyright: ignore[reportPrivateUsage]
        place = LocalWorkplace(threads=1, folder=tmp_path / f"place{number}") if number else workplace
        made.append(LocalEvaluator(task, Config(threads=1), tmp_path / f"work{number}", (), house, place))
    sources = [model("import time\ntime.sleep(600)"), model("return x + x"), model("return 2 * x")]
    started = time.monotonic()
    with ThreadPoolExecutor(3) as pool:
        seen = list(pool.map(judged, made, sources))
    assert [s.status for s in seen] == [Status.TIMEOUT, Status.PASSED, Status.PASSED]
    assert time.monotonic() - started < 30
    for one in made:
        one.close()
    for one in made[1:]:
        one._workplace.close()  # pyright: ignore[reportPrivateUsage]
