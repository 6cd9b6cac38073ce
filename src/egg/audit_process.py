"""Audits in processes of their own, forked from one that has imported PyTorch and run nothing.

    python -m egg.audit_process

reads one order a line, forks, and tells how each process ended; what a process found is in the file that its order
names. A process is the reference worker itself: no candidate is near, so nothing has to be kept from anyone.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import secrets
import select
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, NoReturn

import torch

from egg import compose
from egg.auditing import Order
from egg.errors import EggError
from egg.evaluation.audit.auditor import audit
from egg.evaluation.memory import ran_out
from egg.evaluation.roles.reference import Operations
from egg.evaluation.workers import processes
from egg.schema.audit import Audit
from egg.schema.task import Task

_POLL_S = 0.02
_PRELOADED = ("egg.tasks.find", "torch.export", "torch.fx.experimental.symbolic_shapes", "torch._dynamo", "torch._refs")
"""What trying a task on shapes alone imports, which takes seconds."""


def main() -> None:
    """Serves orders until the caller closes the line."""
    for name in _PRELOADED:
        importlib.import_module(name)
    running: set[int] = set()
    asked = b""
    _tell(pid=os.getpid(), ready=True)
    while True:
        ready, _, _ = select.select([0], [], [], _POLL_S if running else None)
        if ready:
            data = os.read(0, 65536)
            if not data:
                return  # the processes die with this one
            *lines, asked = (asked + data).split(b"\n")
            for line in lines:
                pid = os.fork()
                if pid == 0:
                    _serve(Order(**json.loads(line)))
                running.add(pid)
                _tell(order=json.loads(line)["answer"], pid=pid)
        for pid in list(running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                running.discard(pid)
                _tell(pid=pid, status=os.waitstatus_to_exitcode(status))


def _tell(**message: object) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def _serve(order: Order) -> NoReturn:
    """Writes `{"audit": ...}` or `{"fault": ..., "message": ...}` to the file of the order, and ends."""
    os.setsid()  # so that all that a task starts ends with it
    processes.die_with_parent()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # what a task prints is no part of the answer
        os.dup2(nowhere, standard)
    if order.gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = order.gpu
    if order.memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (order.memory_bytes, order.memory_bytes))
    torch.set_num_threads(order.threads)
    warnings.simplefilter("ignore")
    Path(order.answer).write_text(json.dumps(_answer(order)), encoding="utf-8")
    os._exit(0)


def _answer(order: Order) -> dict[str, Any]:
    try:
        task = compose.find_task(order.spec, order.inputs)
        return {"audit": audit_here(task, order.policy, order.target, order.crowded).model_dump(mode="json")}
    except EggError as error:
        cause = error.__cause__
        fault = "memory" if cause is not None and ran_out(cause) else "task"
        return {"fault": fault if error.exit_status == 2 else "house", "message": str(error)}
    except BaseException as error:  # user code may raise anything, SystemExit too
        if ran_out(error):
            return {"fault": "memory", "message": str(error).strip().splitlines()[0]}
        return {"fault": "house", "message": "".join(traceback.format_exception(error))[-4000:]}


def audit_here(task: Task, policy: str, target: str, crowded: bool = False) -> Audit:
    """Returns the verdict about a task, found in this process; `crowded` as in `Reference`. Raises TaskError."""
    operations: Any = Operations(target, crowded)

    def ask(op: str, **fields: object) -> dict[str, Any]:
        with torch.no_grad():
            return getattr(operations, f"do_{op}")(**fields)

    with tempfile.TemporaryDirectory(prefix="egg-audit-") as folder:
        ask("load", task=task.model_dump_json(), folder=folder)
    return audit(task, policy, ask, lambda: secrets.randbits(32), time.monotonic)


if __name__ == "__main__":
    main()
