"""Faults of a device: told by name, the worker that saw one ends, and the device is tried before the next candidate."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from tests.evaluation.conftest import MakeTask, candidate_of, model

from egg.errors import SandboxError
from egg.evaluation.desk import CandidateDesk, CandidateFailed
from egg.evaluation.devices.driver import Driver
from egg.evaluation.devices.faults import DeviceFault, DeviceFull
from egg.evaluation.devices.machine.streams import KernelFault, Machine
from egg.evaluation.devices.nvml import Gpu
from egg.evaluation.devices.virtual import VirtualDevice
from egg.evaluation.evaluator import LocalEvaluator
from egg.evaluation.health import TRIES, Health
from egg.evaluation.roles import probe
from egg.evaluation.roles.timed import TimedOperations
from egg.evaluation.tiers import Limits
from egg.evaluation.workers.activity import Activity, activity
from egg.evaluation.workers.faults import describe
from egg.evaluation.workers.isolation import Isolation
from egg.evaluation.workers.local import LocalWorkplace
from egg.evaluation.workers.wire import Message
from egg.evaluation.workers.worker import answer
from egg.evaluation.workers.workplace import Post, Worker, WorkerFault
from egg.schema.evaluation import Status


class Library:
    """A CUDA driver in which one call fails with a code."""

    def __init__(self, code: int, name: bytes) -> None:
        self._code, self._name = code, name

    def __getattr__(self, function: str) -> Callable[..., int]:
        if function == "cuGetErrorName":
            return self._tell
        return lambda *_: self._code

    def _tell(self, _: Any, found: Any) -> int:
        ctypes.cast(found, ctypes.POINTER(ctypes.c_char_p))[0] = self._name
        return 0


@pytest.mark.parametrize(
    ("code", "name", "kind"),
    [
        (700, b"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal address"),
        (716, b"CUDA_ERROR_MISALIGNED_ADDRESS", "a misaligned address"),
        (719, b"CUDA_ERROR_LAUNCH_FAILED", "a launch failure"),
        (702, b"CUDA_ERROR_LAUNCH_TIMEOUT", "a launch timeout"),
        (999, b"CUDA_ERROR_UNKNOWN", "CUDA_ERROR_UNKNOWN"),
    ],
)
def test_an_error_of_the_driver_is_told_by_name(code: int, name: bytes, kind: str) -> None:
    driver = Driver(Library(code, name))  # pyright: ignore[reportArgumentType]
    with pytest.raises(DeviceFault, match=rf"can't synchronise: {name.decode()} \({code}\)") as found:
        driver.synchronize()
    assert found.value.kind == kind


def test_a_full_device_is_no_lost_one() -> None:
    driver = Driver(Library(2, b"CUDA_ERROR_OUT_OF_MEMORY"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(DeviceFull) as found:
        driver.allocate(8)
    assert describe(found.value)["cause"] == "memory"
    assert describe(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))["cause"] == "memory"
    assert describe(torch.AcceleratorError("CUDA error: out of memory"))["cause"] == "memory"


class Faulty(TimedOperations):
    """A worker on a virtual device, in which a candidate catches what its kernel did and raises something else."""

    def __init__(self) -> None:
        self.machine = Machine(Random(0))
        self._device = VirtualDevice(self.machine)

    def do_call(self, fault: str) -> Message:
        def kernel(_: int) -> None:
            if fault:
                raise KernelFault(fault)

        self.machine.launch(kernel)
        raise RuntimeError("invalid configuration")


def test_whatever_is_raised_a_lost_device_is_what_is_told() -> None:
    """BR-22: the virtual device's errors stay, as a GPU's do."""
    worker = Faulty()
    honest = answer(worker, {"op": "call", "fault": "", "id": 1, "nonce": ""})["fault"]
    assert (honest["cause"], honest["message"]) == ("raise", "invalid configuration")
    for fault in ("an illegal address", ""):  # the second call does nothing wrong itself
        told = answer(worker, {"op": "call", "fault": fault, "id": 2, "nonce": ""})["fault"]
        assert told["cause"] == "device"
        assert told["message"].startswith("the device reported an illegal address, seen as")


class FakeWorker:
    """A worker that answers as it is told, and can be ended."""

    isolation = Isolation()
    folder = Path("/nowhere")
    last_ask_s = 0.0

    def __init__(self, *answers: Message | Exception) -> None:
        self._answers = list(answers)
        self.alive = True

    def ready(self) -> None:
        pass

    def ask(self, op: str, deadline_s: float, **fields: object) -> Message:
        found = self._answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def activity(self) -> Activity:
        return activity([])

    def log(self) -> str:
        return ""

    def end(self) -> None:
        self.alive = False


def lost() -> WorkerFault:
    said = "the device reported an illegal address, seen as RuntimeError: it failed"
    return WorkerFault({"type": "RuntimeError", "message": said, "detail": "", "cause": "device"})


def test_a_worker_that_lost_the_device_is_never_used_again() -> None:
    worker = FakeWorker(lost())
    with pytest.raises(CandidateFailed, match="illegal address") as failed:
        CandidateDesk(worker, Limits(), lambda: 9.0).ask("check", "call")
    assert (failed.value.status, failed.value.device_lost) == (Status.RUNTIME_ERROR, True)
    assert not worker.alive


@pytest.mark.parametrize("failures", [0, 1, TRIES])
def test_a_device_is_tried_after_a_fault_and_out_of_use_where_it_fails(failures: int) -> None:
    workers = [FakeWorker(lost() if i < failures else {}) for i in range(TRIES)]
    called, waits = list[FakeWorker](), list[float]()

    def call() -> Worker:
        called.append(workers[len(called)])
        return called[-1]

    health = Health(call, lambda worker: worker.end(), lambda: None, waits.append)
    health.assure()
    assert called == []
    health.doubt("candidate a (an illegal address)")
    if failures < TRIES:
        health.assure()
        assert not health.doubted
        assert len(called) == failures + 1
    else:
        for _ in range(2):  # the second time without trying
            with pytest.raises(
                SandboxError, match=r"out of use: after candidate a \(an illegal.*failed.*3 times.*CUDA_VISIBLE"
            ):
                health.assure()
        assert waits == [0.5, 1.0]
    assert not any(worker.alive for worker in called)


def test_the_probe_computes_on_the_device_and_knows_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe.Operations("cpu").do_probe() == {}
    machine = Machine(Random(0))
    monkeypatch.setattr(probe, "open_device", lambda target: VirtualDevice(machine))
    tried = probe.Operations("virtual")
    assert tried.do_probe() == {}

    def kernel(_: int) -> None:
        raise KernelFault("a launch failure")

    machine.launch(kernel)
    with pytest.raises(DeviceFault, match="launch failure"):
        tried.do_probe()


def test_the_next_candidate_runs_in_a_new_process_after_a_probe(
    make_task: MakeTask,
    make_evaluator: Callable[..., LocalEvaluator],
    workplace: LocalWorkplace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """BR-22."""
    started = list[str]()
    start = workplace.start

    def noted(post: Post) -> Worker:
        started.append(post.role)
        return start(post)

    monkeypatch.setattr(workplace, "start", noted)
    evaluator = make_evaluator(make_task("return x * 2", "[torch.randn(16, 300)]"))
    # What a device without a GPU can't do by itself: the driver's answer after a stray store.
    broken = "def lost():\n    from egg.evaluation.devices.faults import fault_of\n"
    broken += "    raise fault_of(700, 'CUDA_ERROR_ILLEGAL_ADDRESS', 'synchronise')\nimport gc\n"
    broken += "for o in gc.get_objects():\n    if type(o).__name__ == 'CpuDevice':\n        o.join = lost\nlost()"
    seen = evaluator.evaluate(candidate_of(model(broken)), "search", 60)
    assert seen.status is Status.RUNTIME_ERROR
    assert seen.failure is not None
    assert "an illegal address" in seen.failure.message
    assert evaluator.evaluate(candidate_of(model("return x + x")), "search", 60).status is Status.PASSED
    assert started == ["candidate", "reference", "probe", "candidate"]


class Nvml:
    """A management library whose GPU gives memory back bit by bit."""

    class NVMLError(Exception):
        pass

    def __init__(self, *used: int) -> None:
        self.used = list(used)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return type("Info", (), {"used": self.used.pop(0) if len(self.used) > 1 else self.used[0]})


def test_memory_that_an_ended_worker_held_is_waited_for() -> None:
    """BR-26, on a GPU."""
    waits, library = list[float](), Nvml(900, 500, 200, 200)
    Gpu(library, waits.append).settle()
    assert len(waits) == 3
    assert library.used == [200]
