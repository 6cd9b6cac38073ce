"""The bootstrap of a worker: confinement, handshake, then one request at a time."""

from __future__ import annotations

import faulthandler
import fcntl
import importlib
import json
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import traceback
from typing import Any, NoReturn, Protocol

from egg.evaluation.workers import confinement, limits, nursery, processes
from egg.evaluation.workers.faults import describe
from egg.evaluation.workers.parcels import MAILBOX
from egg.evaluation.workers.wire import Channel, Message

_CHANNEL_FROM = 1000


class Operations(Protocol):
    """The operations of a role: `op` names the method `do_<op>`."""

    def lasting_fault(self) -> str:
        """Returns the name of an error of the device that stays until this process ends; empty where there is none."""
        ...


def run(channel_fd: int, request: dict[str, Any]) -> NoReturn:
    """Serves one role until the caller goes; never returns and never unwinds."""
    processes.die_with_parent()
    # The first process of a namespace has a parent that it can't see; its channel tells when the caller has gone.
    if os.getppid() not in (0, request["keeper"]):
        os._exit(71)
    channel = Channel(socket.socket(fileno=_out_of_the_way(channel_fd)), MAILBOX)
    missing = _settle(request)
    module = importlib.import_module(f"egg.evaluation.roles.{request['role']}")
    with limits.shown_to_drivers(request["target"]):
        operations = module.Operations(request["target"])
    nonce = request.pop("nonce")
    channel.send({"nonce": nonce, "ready": True, "missing": missing})
    while (message := channel.receive()) is not None:
        channel.send({"id": message["id"], "nonce": nonce, **answer(operations, message)})
    os._exit(0)


def _out_of_the_way(fd: int) -> int:
    """Returns a descriptor of the same channel that no program finds by counting up, and no child inherits."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, min(_CHANNEL_FROM, allowed // 2))
    os.close(fd)
    return high


def _settle(request: dict[str, Any]) -> dict[str, str]:
    """Makes the process private to its role; returns why each layer around it is missing, empty where none is due."""
    sys.argv[:] = sys.orig_argv[:] = ["worker"]  # the same however it was started
    processes.hide_arguments()
    os.chdir(request["folder"])
    tempfile.tempdir = None  # may have been fixed before the fork
    # One value for every process that starts from the same warm parent would make "random" names collide.
    random.seed()
    # A crash leaves the line of Python in the log; a library's own handler would read symbols for seconds.
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    faulthandler.enable()
    if (cell := request["cell"]) is not None:
        return confinement.confine(confinement.Cell.of(cell))
    limits.hide_memory()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if request["memory_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (request["memory_bytes"],) * 2)
    return {}


def answer(operations: Operations, message: Message) -> Message:
    """Returns the `result` of one request, or its `fault`."""
    fields = {k: v for k, v in message.items() if k not in ("id", "nonce", "op")}
    try:
        result = getattr(operations, f"do_{message['op']}")(**fields)
    except BaseException as error:  # SystemExit and its like are answers too
        return {"fault": _device_first(describe(error), operations.lasting_fault())}
    return {"result": result}


def _device_first(fault: Message, lasting: str) -> Message:
    """Returns the fault as the device's, where it has one: whatever was raised is what that led to."""
    if not lasting:
        return fault
    said = f"the device reported {lasting}, seen as {fault['type']}: {fault['message']}"
    return {**fault, "message": said, "cause": "device"}


def main() -> NoReturn:
    """Entry of every process: descriptors of its socket and of a file with the request as JSON.

    A request to keep workers returns in those that were forked; so the stack below a candidate is the same in all.
    """
    with open(int(sys.argv[2]), "rb") as file:
        request = json.loads(file.read())
    fd = int(sys.argv[1])
    try:
        if (target := request.get("keep_for")) is not None:
            fd, request = nursery.keep(fd, target)
        run(fd, request)
    except SystemExit:
        raise
    except BaseException:
        traceback.print_exc()
    os._exit(70)


if __name__ == "__main__":
    main()
