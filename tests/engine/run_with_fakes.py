"""Runs or resumes one run of fakes in a folder: the process that the kill test kills.

Time is a ManualClock, so that the decisions do not depend on when it is killed; the sleeps only leave moments to be
killed in: inside every evaluation, and before, between and after the writes of an event.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from egg import engine
from egg.archive import RunFolder
from egg.planning import RulePlanner
from egg.schema.run import Event
from egg.testing.factories import make_config, make_run_started
from egg.testing.fakes import FakeEvaluator, fake_machine

PAUSE_S = 0.002


class SlowFolder:
    """A run folder that writes every line in two halves, so that a kill can come between them."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def append(self, event: Event) -> None:
        write, sync = os.write, os.fsync

        def slow_write(descriptor: int, raw: bytes) -> int:
            half = write(descriptor, raw[: len(raw) // 2])
            time.sleep(PAUSE_S)
            return half + write(descriptor, raw[half:])

        def slow_sync(descriptor: int) -> None:
            time.sleep(PAUSE_S / 4)
            sync(descriptor)

        os.write, os.fsync = slow_write, slow_sync
        try:
            self.folder.append(event)
        finally:
            os.write, os.fsync = write, sync
        time.sleep(PAUSE_S / 2)

    def events(self) -> Iterator[Event]:
        return self.folder.events()


def main(path: Path, seed: int) -> None:
    evaluator = FakeEvaluator(pause=lambda: time.sleep(PAUSE_S), failing_share=0.4)
    started = make_run_started(config=make_config(seed=seed, ladder=("eager", "torch.compile"), explore_share=0.25))
    begun = (path / "events.jsonl").exists() and any(True for _ in RunFolder.read(path).events())
    with RunFolder.open(path) if begun else RunFolder.create(path) as folder:
        machine = fake_machine(RulePlanner(), SlowFolder(folder), evaluator)
        engine.resume(machine) if begun else engine.run(machine, started)


def serve() -> None:
    """Forks a process for every line `PATH SEED KILL_AFTER_S`, and answers with its exit status: -9 when killed.

    The interpreter and its imports are paid for once, so that a kill hits the run and not the start.
    """
    for line in sys.stdin:
        path, seed, kill_after_s = line.split()
        child = os.fork()
        if child == 0:
            main(Path(path), int(seed))
            os._exit(0)
        if float(kill_after_s) < float("inf"):
            time.sleep(float(kill_after_s))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
