"""How the evaluator speaks with its two workers: deadlines on one side, blame on the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil

from egg.errors import SandboxError, TaskError
from egg.evaluation.answers import Unfit, check
from egg.evaluation.tiers import Limits
from egg.evaluation.workers.faults import head_and_tail
from egg.evaluation.workers.wire import Message
from egg.evaluation.workers.workplace import Worker, WorkerFault, WorkerLost
from egg.schema.evaluation import Failure, Phase, Status

_STATUS_OF_CAUSE = {
    "build": Status.COMPILE_ERROR,
    "memory": Status.OUT_OF_MEMORY,
    "rejected": Status.REJECTED,
}
_STATUS_OF_LOSS = {
    "timeout": Status.TIMEOUT,
    "memory": Status.OUT_OF_MEMORY,
    "protocol": Status.REJECTED,
}
_LEAST_DEADLINE_S = 1.0
_LEAST_TIMING_S = 20.0
"""What a request gets even where the allowance is spent: a candidate that was found right is timed to the end."""


class CandidateFailed(Exception):
    """The candidate did not pass. With `device_lost`, its worker can't use the device any more and was ended."""

    def __init__(self, status: Status, failure: Failure, device_lost: bool = False) -> None:
        super().__init__(failure.message)
        self.status = status
        self.failure = failure
        self.device_lost = device_lost


class ReferenceLost(Exception):
    """The reference worker ended on its own; it can be rebuilt."""


class CandidateDesk:
    """Asks the candidate worker; every fault is the candidate's."""

    def __init__(self, worker: Worker, limits: Limits, left_s: Callable[[], float]) -> None:
        self.worker = worker
        self._limits = limits
        self._left_s = left_s
        self.setup_s = 0.0

    def ask(self, phase: Phase, op: str, **fields: object) -> Message:
        """Returns the answer. Raises CandidateFailed."""
        least_s = _LEAST_TIMING_S if phase == "time" else _LEAST_DEADLINE_S
        deadline_s = min(self._limits.deadline_s[phase], max(self._left_s(), least_s))
        try:
            answer = self.worker.ask(op, deadline_s, **fields)
        except WorkerFault as fault:
            status = _STATUS_OF_CAUSE.get(fault.cause, Status.RUNTIME_ERROR)
            # A verdict of the worker itself needs no class name and no traceback.
            raised = fault.cause in ("raise", "build", "memory")
            message = f"{fault.type}: {fault.message}" if raised else fault.message
            lost = fault.cause == "device"
            if lost:
                self.worker.end()
            failure = _failure(phase, message, fault.detail if raised or lost else "")
            raise CandidateFailed(status, failure, lost) from fault
        except WorkerLost as loss:
            status = _STATUS_OF_LOSS.get(loss.loss, Status.RUNTIME_ERROR)
            message = loss.message
            if loss.loss == "timeout":
                message = f"{phase} took longer than {deadline_s:.3g} s and was ended"
            raise CandidateFailed(status, _failure(phase, message, loss.log)) from loss
        try:
            check(op, answer)
        except Unfit as error:
            raise CandidateFailed(Status.REJECTED, _failure(phase, str(error), self.worker.log())) from error
        if phase in ("import", "construct", "build"):
            self.setup_s += self.worker.last_ask_s
        return answer


class ReferenceDesk:
    """Asks a reference worker; every fault is the task's or the house's."""

    def __init__(self, worker: Worker, limits: Limits, target: str) -> None:
        self.worker = worker
        self._limits = limits
        self._target = target

    def pool(
        self, folder: Path | None, workload: str, seeds: list[int], like: dict[str, bool] | None = None
    ) -> Message:
        """Returns the inputs of the calls that are timed next, drawn under seeds and written in a `folder`, if any.

        The rest of the answer says how the calls are made; another worker that is given it as `like` makes them alike.
        Raises what `ask` raises.
        """
        limit_bytes = self._limits.pool_on(self._target)
        return self.ask(
            "pool", folder=str(folder or ""), workload=workload, seeds=seeds, limit_bytes=limit_bytes, like=like
        )

    def ask(self, op: str, deadline_s: float | None = None, **fields: object) -> Message:
        """Returns the answer. Raises TaskError, SandboxError or ReferenceLost."""
        limit_s = self._limits.reference_s if deadline_s is None else deadline_s
        try:
            return self.worker.ask(op, limit_s, **fields)
        except WorkerFault as fault:
            if fault.cause == "device":
                self.worker.end()
                raise ReferenceLost(f"{op}: {fault.message}") from fault
            if fault.cause == "memory":
                raise self._no_room(op, fault.message) from fault
            if fault.type in ("TaskError", "UsageError"):
                raise TaskError(fault.message) from fault
            raise SandboxError(f"the reference worker failed in {op}: {fault}\n{fault.detail}") from fault
        except WorkerLost as loss:
            if loss.loss == "timeout":
                raise TaskError(f"the reference took longer than {limit_s:.3g} s in {op}") from loss
            if loss.loss == "memory":
                raise self._no_room(op, loss.message) from loss
            raise ReferenceLost(f"{op}: {loss.message}\n{loss.log}") from loss

    def _no_room(self, op: str, said: str) -> TaskError:
        """Returns the error for a reference that found too little memory: the task's, as no candidate code ran there.

        `said` tells what was asked for, and of a GPU what it has.
        """
        memory = psutil.virtual_memory()
        return TaskError(
            f"the task does not fit in memory, in {op}: {said}; the host has {memory.total / 2**30:.1f} GiB, "
            f"{memory.available / 2**30:.1f} GiB of it free, and a worker may take "
            f"{self._limits.memory_bytes() / 2**30:.1f} GiB. Draw smaller inputs, or use a machine with more memory"
        )


def _failure(phase: Phase, message: str, detail: str) -> Failure:
    line = (message.strip().splitlines() or ["no message"])[0]
    return Failure(phase=phase, message=line, detail=head_and_tail(detail))
