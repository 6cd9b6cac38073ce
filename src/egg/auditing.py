"""Audits of one task or of a whole suite, each in a process of its own, for the command line and the benchmarks.

Imports no torch: the processes do.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import psutil

from egg.errors import SandboxError, UsageError
from egg.protocols import Clock
from egg.schema.audit import Audit, AuditOutcome
from egg.schema.base import content_hash

DEADLINE_S = 300.0
_MEMORY_SHARE = 0.8
"""Of the memory that is free when the first process starts, shared by all that run at a time."""
_START_S = 120.0
"""Seconds that importing PyTorch may take."""
_GPUS = Path("/proc/driver/nvidia/gpus")


@dataclass(frozen=True)
class Subject:
    """One task to audit."""

    name: str
    spec: str
    inputs: str | None = None
    text_hash: str = ""


@dataclass(frozen=True)
class Asked:
    """How tasks are audited."""

    policy: str = "strict"
    target: Literal["cpu", "cuda"] = "cpu"
    jobs: int = 1
    """Tasks at a time; on GPUs, on each of them."""
    deadline_s: float = DEADLINE_S
    """Seconds that one task may take."""
    limit_s: float | None = None
    """Seconds after which no task is started, and those that run are put off; None for no limit."""


@dataclass(frozen=True)
class Order:
    """What one process audits, and how."""

    spec: str
    inputs: str | None
    policy: str
    target: str
    gpu: str | None
    """The one GPU that it may see; None for all."""
    threads: int
    memory_bytes: int | None
    """Limit on private memory; None for no limit."""
    answer: str
    """File that it writes what it found to."""
    crowded: bool = False
    """True where others run beside it: out of memory, it gives up, to be run again alone."""


def subjects_of(spec: str, inputs: str | None = None, levels: Sequence[int] = (1, 2, 3)) -> list[Subject]:
    """Returns the tasks that `spec` names: one, or all of a folder with `level1`, `level2`, ... or of one such level.

    Raises UsageError for a folder without tasks.
    """
    root = Path(spec)
    if not root.is_dir():
        path = Path(spec.partition(":")[0])
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        return [Subject(path.stem if path.is_file() else spec, spec, inputs, content_hash(text) if text else "")]
    from egg.tasks.suite import find_suite

    if inputs is not None:
        raise UsageError(f"--inputs {inputs!r}: the tasks of {spec} draw their own inputs; leave --inputs away")
    one = re.fullmatch(r"level(\d+)", root.resolve().name)
    if one:
        files = find_suite(root.resolve().parent, [int(one[1])])
    else:
        files = find_suite(root, [n for n in levels if (root / f"level{n}").is_dir()])
    if not files:
        raise UsageError(f"{spec} holds no tasks: a suite has level1, level2, ... with one file a task")
    return [_subject(path) for path in files]


def _subject(path: Path) -> Subject:
    text = path.read_text(encoding="utf-8")
    return Subject(f"{path.parent.name}/{path.stem}", str(path), None, content_hash(text))


def kept(path: Path) -> dict[tuple[str, str], AuditOutcome]:
    """Returns the outcomes in a file of one JSON object a line, by name and text; a torn last line is left out."""
    if not path.is_file():
        return {}
    found: dict[tuple[str, str], AuditOutcome] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):
            outcome = AuditOutcome.model_validate_json(line)
            found[outcome.name, outcome.text_hash] = outcome
    return found


def keep(path: Path, outcome: AuditOutcome) -> None:
    """Appends one outcome, on a line of its own also after a torn one."""
    torn = path.is_file() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as sink:
        sink.write(("\n" if torn else "") + outcome.model_dump_json() + "\n")


def audits(subjects: Sequence[Subject], asked: Asked, clock: Clock = time.monotonic) -> Iterator[AuditOutcome]:
    """Yields the outcome of each task as it comes, of as many as the limit allows.

    A task that runs out of memory beside others is audited again, alone, when the others are done.
    """
    ends = None if asked.limit_s is None else clock() + asked.limit_s
    crowded: list[Subject] = []
    pool = _Pool(asked, clock, ends)
    for subject, outcome in pool.run(subjects):
        if outcome.fault == "memory" and pool.width > 1:
            crowded.append(subject)
        else:
            yield outcome
    for _, outcome in _Pool(replace(asked, jobs=1), clock, ends, width=1).run(crowded):
        yield outcome


@dataclass
class _Running:
    subject: Subject
    gpu: str | None
    answer: Path
    started: float
    pid: int | None = None
    status: int | None = None
    """Exit status, negative for a signal; None while it runs."""


class _Pool:
    """Runs one process a task, a few at a time."""

    def __init__(self, asked: Asked, clock: Clock, ends: float | None, width: int | None = None) -> None:
        gpus: list[str | None] = list(_gpus()) if asked.target == "cuda" else []
        places: list[str | None] = [gpu for _ in range(asked.jobs) for gpu in gpus or [None]]
        self._free = places[:width]
        self.width = len(self._free)
        self._asked = asked
        self._clock = clock
        self._ends = ends
        self._memory = int(_MEMORY_SHARE * psutil.virtual_memory().available / self.width)

    def run(self, subjects: Sequence[Subject]) -> Iterator[tuple[Subject, AuditOutcome]]:
        """Yields subjects with their outcomes. What runs at the end of the time is ended and not yielded."""
        waiting, running = list(subjects), list[_Running]()
        with tempfile.TemporaryDirectory(prefix="egg-audits-") as folder, _Forker() as forker:
            while (waiting or running) and not self._is_over():
                while waiting and self._free:
                    one = self._prepared(waiting.pop(0), Path(folder))
                    forker.start(self._order(one))
                    running.append(one)
                forker.note(running, self._patience_s(running))
                for one in [r for r in running if r.status is not None or self._is_late(r)]:
                    outcome = self._outcome(one)
                    running.remove(one)
                    self._free.append(one.gpu)
                    yield one.subject, outcome
            for one in running:
                _end(one)

    def _is_over(self) -> bool:
        return self._ends is not None and self._clock() >= self._ends

    def _is_late(self, one: _Running) -> bool:
        return self._clock() >= one.started + self._asked.deadline_s

    def _patience_s(self, running: Sequence[_Running]) -> float:
        until = min(r.started for r in running) + self._asked.deadline_s
        until = until if self._ends is None else min(until, self._ends)
        return max(0.0, until - self._clock())

    def _prepared(self, subject: Subject, folder: Path) -> _Running:
        answer = folder / f"{content_hash(subject.name, subject.spec)}.json"
        return _Running(subject, self._free.pop(0), answer, self._clock())

    def _order(self, one: _Running) -> Order:
        asked = self._asked
        return Order(
            one.subject.spec, one.subject.inputs, asked.policy, asked.target, one.gpu,
            threads=max(1, len(os.sched_getaffinity(0)) // self.width),
            memory_bytes=self._memory if asked.target == "cpu" else None,
            answer=str(one.answer), crowded=self.width > 1,
        )  # fmt: skip

    def _outcome(self, one: _Running) -> AuditOutcome:
        """Returns what came of a task that has ended, or is late."""
        spent_s = self._clock() - one.started
        _end(one)
        if one.status is None:
            answer: dict[str, Any] = {
                "fault": "timeout",
                "message": f"no verdict within {self._asked.deadline_s:g} s",
            }
        elif one.status == 0:
            answer = json.loads(one.answer.read_text(encoding="utf-8"))
        else:
            answer = _lost(one.status)
        found = answer.pop("audit", None)
        return AuditOutcome(
            name=one.subject.name,
            text_hash=one.subject.text_hash,
            audit=None if found is None else Audit.model_validate(found),
            device=self._asked.target,
            wall_s=round(spent_s, 2),
            **answer,
        )


class _Forker:
    """A process that has imported PyTorch and forks one process an order."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "egg.audit_process"]
        # As in `worker_environment`: what forks must not start the driver of a GPU.
        environment = {**os.environ, "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._told = b""
        self._read(_START_S)  # it says that it is ready
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # and with it whatever it has forked
        self._process.communicate()

    def start(self, order: Order) -> None:
        """Orders one process. Raises SandboxError where there is nobody to fork it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(asdict(order)).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise SandboxError(f"the process that forks the audits has ended: {error}") from error

    def note(self, running: Sequence[_Running], patience_s: float) -> None:
        """Notes who started and who ended, as soon as somebody does. Raises SandboxError."""
        for told in self._read(patience_s):
            for one in running:
                if told.get("order") == str(one.answer):
                    one.pid = told["pid"]
                elif one.pid == told["pid"]:
                    one.status = told.get("status")

    def _read(self, patience_s: float) -> list[dict[str, Any]]:
        """Returns what it has told, nothing where it told nothing in time. Raises SandboxError."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], patience_s)
        if not ready:
            return []
        data = os.read(self._process.stdout.fileno(), 65536)
        if not data:
            raise SandboxError("the process that forks the audits has ended; does `import torch` work?")
        *lines, self._told = (self._told + data).split(b"\n")
        return [json.loads(line) for line in lines]


def _lost(status: int) -> dict[str, Any]:
    """Returns why a process gave no answer."""
    ended = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    fault = "memory" if status == -signal.SIGKILL else "task"
    return {"fault": fault, "message": f"the process of the task ended by itself: {ended}"}


def _end(one: _Running) -> None:
    """Ends the process of a task and all that it started."""
    if one.pid is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(one.pid, signal.SIGKILL)


def _gpus() -> list[str]:
    """Returns the GPUs that work may use, by the names that CUDA_VISIBLE_DEVICES takes."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name for name in visible.split(",") if name]
    return [str(i) for i, _ in enumerate(sorted(_GPUS.iterdir()))] if _GPUS.is_dir() else ["0"]
