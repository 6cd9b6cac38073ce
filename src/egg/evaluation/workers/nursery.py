"""The process that starts, keeps and ends workers. It is started as a worker is, and told to keep others.

It has imported the libraries that every worker needs, runs nothing else and owns no second thread, so a fork of it is
a warm worker in milliseconds. It runs no candidate code. As the subreaper of its descendants it inherits each
process that a worker leaves behind, also one that forked twice and made a session of its own, and so can
end them all. When its caller goes, the control socket closes, and it ends everything.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, Any

from egg.evaluation.workers import limits, processes
from egg.evaluation.workers.namespaces import ProcessNamespaces, identities

PRELOADED = ("torch", "torch.export", "triton", "egg.evaluation.roles.candidate", "egg.evaluation.roles.reference")
"""Imported before the first fork, where installed."""
PRELOADED_FOR_CPU = ("tvm_ffi.cpp",)
"""The same where no worker uses a GPU: its import starts the driver of one in sight, and then no fork is possible."""

_POLL_S = 0.002
_REAP_S = 2.0


class Forked(BaseException):
    """Raised in a forked worker: it leaves every frame of the nursery, so that its stack is as of any worker."""

    def __init__(self, request: dict[str, Any], fds: list[int]) -> None:
        super().__init__()
        self.request = request
        self.fds = fds


class Nursery:
    """Answers `start` and `end` requests on one control socket."""

    def __init__(self, control: socket.socket, namespaces: ProcessNamespaces) -> None:
        self._control = control
        self._namespaces = namespaces
        self._workers: set[int] = set()
        self._ended: dict[int, int] = {}

    def serve(self) -> None:
        """Answers requests until the caller goes. Raises Forked in each process that is forked."""
        while True:
            payload, fds, _, _ = socket.recv_fds(self._control, 65536, 8)
            if not payload:
                break
            request = json.loads(payload)
            answer = self._start(request, fds) if request["op"] == "start" else self._end(request)
            for fd in fds:
                os.close(fd)
            self._control.send(json.dumps(answer).encode())
        for pid in list(self._workers):
            self._end({"pid": pid, "grace_s": 0.0})

    def _start(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self._reap()
        fork = not request["fresh"] and processes.thread_count() == 1 and not processes.drives_gpu()
        start = self._fork if fork else self._spawn
        request["keeper"] = os.getpid()
        if (cell := request["cell"]) is None:
            pid = start(request, fds)
        else:
            refused = {"process namespace": self._namespaces.refused} if self._namespaces.refused else {}
            cell |= {"keeper": os.getpid(), "outside": identities(), "refused": refused}
            with self._namespaces.entered():
                pid = start(request, fds)
        self._workers.add(pid)
        return {"pid": pid, "method": "fork" if fork else "spawn"}

    def _spawn(self, request: dict[str, Any], fds: list[int]) -> int:
        channel, log = fds
        with written(request) as file:
            worker = subprocess.Popen(
                command(channel, file.fileno()),
                pass_fds=(channel, file.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=request["env"],
                start_new_session=True,
            )
        worker.returncode = 0  # this process reaps by itself, so Popen must not
        return worker.pid

    def _fork(self, request: dict[str, Any], fds: list[int]) -> int:
        pid = os.fork()
        if pid == 0:
            raise Forked(request, fds)
        return pid

    def _end(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ends one worker with its group, and whatever no live worker descends to."""
        pid = int(request["pid"])
        if request["grace_s"] > 0 and not self._has_ended(pid):
            processes.send_signal(pid, signal.SIGTERM, group=True)
            self._wait(pid, request["grace_s"])
        for child in processes.descendants(pid):
            processes.send_signal(child, signal.SIGKILL)
        processes.send_signal(pid, signal.SIGKILL, group=True)
        self._wait(pid, _REAP_S)
        self._workers.discard(pid)
        self._end_orphans()
        return {"status": self._ended.pop(pid, None)}

    def _end_orphans(self) -> None:
        until = time.monotonic() + _REAP_S
        while time.monotonic() < until:
            self._reap()
            orphans = processes.descendants(os.getpid(), frozenset(self._workers))
            if not orphans:
                return
            for orphan in orphans:
                processes.send_signal(orphan, signal.SIGKILL)
            time.sleep(_POLL_S)

    def _wait(self, pid: int, limit_s: float) -> None:
        until = time.monotonic() + limit_s
        while not self._has_ended(pid) and time.monotonic() < until:
            time.sleep(_POLL_S)

    def _has_ended(self, pid: int) -> bool:
        self._reap()
        return pid in self._ended

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._workers:
                self._ended[pid] = os.waitstatus_to_exitcode(status)


def preload(target: str) -> None:
    """Imports what workers need; a package that isn't installed is left out."""
    names = PRELOADED
    if target == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # for this process alone: each worker is given its own environment
        names += PRELOADED_FOR_CPU
    for name in names:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    if target == "cuda":
        tools: Any = importlib.import_module("egg.evaluation.roles.tools")
        tools.preload_triton()
    gc.collect()
    gc.freeze()


def keep(control_fd: int, target: str) -> tuple[int, dict[str, Any]]:
    """Serves a control socket until the caller goes, and ends this process then.

    It returns in forked workers alone: the descriptor of the channel of one, and its request.
    """
    processes.adopt_orphans()
    control = socket.socket(fileno=control_fd)
    control.set_inheritable(False)
    namespaces = ProcessNamespaces()  # needs a process with one thread, so before the libraries
    limits.hide_memory()
    preload(target)
    control.send(json.dumps({"ready": True, "threads": processes.thread_count()}).encode())
    try:
        Nursery(control, namespaces).serve()
    except Forked as forked:
        request, (channel, log) = forked.request, forked.fds
    else:
        raise SystemExit(0)
    control.close()
    namespaces.close()
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with open(os.devnull) as null:
        os.dup2(null.fileno(), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.environ.clear()
    os.environ.update(request["env"])
    return channel, request


def command(fd: int, request_fd: int) -> list[str]:
    """Returns the command line of a new process, as long for all: its socket, and a file with what it is asked to be.

    That is not among the arguments, which every process of the machine may read.
    """
    return [sys.executable, "-P", "-m", "egg.evaluation.workers.worker", f"{fd:06}", f"{request_fd:06}"]


@contextmanager
def written(request: dict[str, Any]) -> Generator[IO[bytes]]:
    """Opens a file without a name that holds a request."""
    with os.fdopen(os.memfd_create("request"), "wb") as file:
        file.write(json.dumps(request).encode())
        file.flush()
        file.seek(0)
        yield file
