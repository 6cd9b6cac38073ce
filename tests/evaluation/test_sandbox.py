"""What a candidate may do to its worker: nothing that reaches the caller, the next candidate or the machine."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from egg.errors import SandboxError
from egg.evaluation.evaluator import LocalEvaluator
from egg.evaluation.tiers import Limits
from egg.evaluation.workers.local import LocalWorkplace
from egg.evaluation.workers.workplace import Post
from egg.schema.evaluation import Status

from .conftest import Judge, MakeTask, candidate_of, model

FORWARD = "return x * 2"
ROWS = "[torch.randn(16, 300)]"
HANG = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def hang():
    subprocess.Popen(["sleep", "{mark}"])
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "{mark}"])
        os._exit(0)
    time.sleep(600)
"""


def sleepers(mark: str) -> list[psutil.Process]:
    """Returns the living processes that `HANG` started."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.cmdline() == ["sleep", mark] and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize("phase", ["import", "construct", "build"])
def test_a_hang_ends_at_its_deadline_with_all_that_it_started(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator], phase: str
) -> None:
    mark = str(70000 + os.getpid() % 10000 + len(phase))
    before = HANG.format(mark=mark) + ("hang()\n" if phase == "import" else "")
    init = "hang()" if phase == "construct" else "pass"
    forward = "hang()" if phase == "build" else FORWARD
    deadlines = {**Limits().deadline_s, phase: 1.0}
    evaluator = make_evaluator(make_task(FORWARD, ROWS), Limits(deadline_s=deadlines))
    started = time.monotonic()
    seen = evaluator.evaluate(candidate_of(model(forward, init, before)), "search", 60)
    assert seen.status is Status.TIMEOUT
    assert seen.failure is not None
    assert seen.failure.phase == phase
    assert f"{phase} took longer than 1 s" in seen.failure.message
    assert time.monotonic() - started < 30
    assert sleepers(mark) == []
    assert evaluator.evaluate(candidate_of(model(FORWARD)), "search", 60).status is Status.PASSED


def test_the_allowance_bounds_a_hang(make_task: MakeTask, judge: Judge) -> None:
    seen = judge(make_task(FORWARD, ROWS), model("import time\ntime.sleep(600)"), allowance_s=1.5)
    assert seen.status is Status.TIMEOUT


@pytest.mark.parametrize(
    ("before", "init", "forward", "said"),
    [
        ("import os\nos._exit(0)", "pass", FORWARD, "exited with status 0 and without an answer"),
        ("import sys\nsys.exit(0)", "pass", FORWARD, "SystemExit: 0"),
        ("import ctypes\nctypes.string_at(0)", "pass", FORWARD, "SIGSEGV"),
        ("import os", "os.abort()", FORWARD, "ended by SIG"),
        (
            "class Two(Exception):\n    def __init__(self, a, b): super().__init__(a)",
            "pass",
            "raise Two(1, 2)",
            "Two: 1",
        ),
        ("class Bad(Exception):\n    def __str__(self): raise ValueError", "pass", "raise Bad()", "Bad: (its text"),
        ("", "pass", "def deeper(): return deeper()\nreturn deeper()", "RecursionError"),
        ("import os", "pass", "os.closerange(3, 4096)\nreturn x * 2", "without an answer"),
        ("", "pass", "raise RuntimeError('invalid block size')", "RuntimeError: invalid block size"),
    ],
)
def test_a_crash_is_a_failure_of_the_candidate(
    make_task: MakeTask, judge: Judge, before: str, init: str, forward: str, said: str
) -> None:
    seen = judge(make_task(FORWARD, ROWS), model(forward, init, before))
    assert seen.status is Status.RUNTIME_ERROR, seen.failure
    assert seen.failure is not None
    assert said in seen.failure.message


@pytest.mark.parametrize(
    ("source", "said"),
    [("def broken(:\n    pass\n", "SyntaxError"), ("", "defines no torch.nn.Module named ModelNew")],
)
def test_a_file_that_is_no_candidate_fails(make_task: MakeTask, judge: Judge, source: str, said: str) -> None:
    seen = judge(make_task(FORWARD, ROWS), source)
    assert seen.status in (Status.COMPILE_ERROR, Status.RUNTIME_ERROR)
    assert said in (seen.failure.message if seen.failure else "")


def test_the_reference_is_out_of_reach(make_task: MakeTask, judge: Judge) -> None:
    inherited = "class ModelNew(Model):\n    pass\n"
    seen = judge(make_task(FORWARD, ROWS), inherited)
    assert "NameError" in (seen.failure.message if seen.failure else "")
    hunting = "import gc\nfound = [o for o in gc.get_objects() if type(o).__name__ in ('Model', 'Reference')]\n"
    assert judge(make_task(FORWARD, ROWS), model(hunting + "assert not found\nreturn x * 2")).status is Status.PASSED


def test_a_flood_of_output_is_cut(make_task: MakeTask, judge: Judge) -> None:
    flood = "print('head-mark')\nfor _ in range(10240): print('x' * 1023)\nprint('tail-mark')\nimport os\nos._exit(3)"
    seen = judge(make_task(FORWARD, ROWS), model(flood))
    assert seen.failure is not None
    assert "status 3" in seen.failure.message
    assert len(seen.failure.detail) <= 8000
    assert "head-mark" in seen.failure.detail
    assert "tail-mark" in seen.failure.detail
    assert "cut ..." in seen.failure.detail


def test_a_flood_before_a_right_answer_passes(make_task: MakeTask, judge: Judge) -> None:
    flood = "print('x' * (10 * 2**20))"
    assert judge(make_task(FORWARD, ROWS), model(FORWARD, flood)).status is Status.PASSED


def test_a_claim_is_no_verdict(make_task: MakeTask, judge: Judge) -> None:
    claim = """
import json, os
print("PASS")
open("result.json", "w").write(json.dumps({"status": "PASSED", "speedup": 100}))
for fd in range(1, 64):
    try:
        os.write(fd, b'{"result": {}}')
    except OSError:
        pass
"""
    seen = judge(make_task(FORWARD, ROWS), model("return torch.zeros_like(x)", before=claim))
    assert seen.status in (Status.WRONG_VALUE, Status.REJECTED)


def test_no_secret_reaches_a_candidate(
    make_task: MakeTask, judge: Judge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    looking = "import os, pathlib\nassert 'SOME_API_KEY' not in os.environ\n"
    looking += f"assert str(pathlib.Path.home()).startswith({str(tmp_path)!r})\n"
    looking += "import tempfile\nassert tempfile.gettempdir().startswith(str(pathlib.Path.home().parent))\nreturn x * 2"
    assert judge(make_task(FORWARD, ROWS), model(looking)).status is Status.PASSED


def test_deferred_code_never_runs(make_task: MakeTask, judge: Judge, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    later = f"import atexit, time\natexit.register(lambda: (open({str(marker)!r}, 'w').close(), time.sleep(60)))\n"
    started = time.monotonic()
    assert judge(make_task(FORWARD, ROWS), model(FORWARD, before=later)).status is Status.PASSED
    assert time.monotonic() - started < 40
    assert not marker.exists()


def test_running_out_of_memory_is_told_apart(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    evaluator = make_evaluator(make_task(FORWARD, ROWS), Limits(memory_share=0.05))
    hog = model("kept = [torch.ones(2**26) for _ in range(1000)]\nreturn x * len(kept)")
    assert evaluator.evaluate(candidate_of(hog), "search", 60).status is Status.OUT_OF_MEMORY


def test_a_lost_reference_is_rebuilt_once(make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]) -> None:
    evaluator = make_evaluator(make_task(FORWARD, ROWS))
    assert evaluator.evaluate(candidate_of(model(FORWARD)), "search", 60).status is Status.PASSED
    standing = evaluator._standing.engaged().desk.worker  # pyright: ignore[reportPrivateUsage]
    psutil.Process(standing.pid).kill()  # pyright: ignore
    seen = evaluator.evaluate(candidate_of(model("return x + x")), "search", 60)
    assert seen.status is Status.PASSED
    assert seen.findings == ()


def test_a_nursery_that_does_not_answer_is_given_up_and_replaced(tmp_path: Path) -> None:
    place = LocalWorkplace(threads=1, folder=tmp_path)
    post = Post("reference", tmp_path / "worker", tmp_path / "builds")
    try:
        place.start(post).ready()
        silent, control = place._process, place._control  # pyright: ignore[reportPrivateUsage]
        assert silent is not None
        assert control is not None
        silent.send_signal(signal.SIGSTOP)
        control.settimeout(0.2)
        with pytest.raises(SandboxError, match="is gone"):
            place.start(post)
        assert silent.poll() is not None
        place.start(replace(post, folder=tmp_path / "other")).ready()
    finally:
        place.close()


def test_a_schedule_replaces_the_literals_of_the_file(
    make_task: MakeTask, judge: Judge, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    source = model("return x * self.factor", "self.factor = SCHEDULE['factor']", "SCHEDULE = {'factor': 3}\n")
    task = make_task(FORWARD, ROWS)
    assert judge(task, source).status is Status.WRONG_VALUE
    space = {"factor": {"choices": (2, 3), "stage": "tiling", "principle_id": "p", "doc": "d"}}
    right = candidate_of(source, {"factor": 2}, schedule_space=space)
    assert make_evaluator(task).evaluate(right, "search", 60).status is Status.PASSED
