"""What a GPU asks of the house, without one: forks that stay free of its driver, memory, and what its tools tell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from egg.evaluation.correctness.fingerprint import Fingerprints
from egg.evaluation.correctness.oracle import NoRoom, Oracle
from egg.evaluation.devices.cuda import free_blocks
from egg.evaluation.devices.nvml import open_gpu
from egg.evaluation.memory import ran_out
from egg.evaluation.roles.tools import warm_triton
from egg.evaluation.workers import access, limits, processes
from egg.evaluation.workers.environment import worker_environment

ASKS = """
import torch
asked = []
torch._C._cuda_getDeviceCount = lambda: asked.append("driver") or 0
torch._C._cuda_init = lambda: asked.append("context")
torch._C._cuda_getCurrentRawStream = lambda device: 0
torch.cuda._device_count_nvml = lambda: asked.append("management library") or 1
from {module} import {names}
{call}
assert torch.cuda.is_available()
print(",".join(sorted(set(asked))))
"""


@pytest.mark.parametrize(
    ("module", "names", "call"),
    [
        ("egg.evaluation.workers.nursery", "preload", "preload('cuda')"),
        ("egg", "audit_process", "import importlib; [importlib.import_module(n) for n in audit_process._PRELOADED]"),
    ],
)
def test_what_is_forked_has_not_started_the_driver(tmp_path: Path, module: str, names: str, call: str) -> None:
    environment = worker_environment(os.environ, tmp_path, tmp_path, 1)
    code = ASKS.format(module=module, names=names, call=call)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert ended.stdout.strip() == "management library", ended.stderr


def test_a_process_that_holds_the_drivers_file_is_not_forked(tmp_path: Path) -> None:
    assert not processes.drives_gpu()
    (tmp_path / "nvidia-uvm").touch()
    with (tmp_path / "nvidia-uvm").open():
        assert processes.drives_gpu()


def test_packages_that_pip_put_elsewhere_are_open_to_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site" / "thing-1.0.dist-info").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site"), str(tmp_path / "project"), ""])
    opened = [rule.path for rule in access.system_rules({})]
    assert str(tmp_path / "site") in opened
    assert str(tmp_path / "project") not in opened


def test_only_free_blocks_of_the_common_pool_are_poisoned() -> None:
    blocks = [{"size": 512, "state": "active_allocated"}, {"size": 1024, "state": "inactive"}]
    held = [{"size": 64, "state": "active_awaiting_free"}, {"size": 32, "state": "inactive"}]
    segments = [
        {"address": 4096, "segment_pool_id": (0, 0), "blocks": blocks},
        {"address": 8192, "segment_pool_id": (0, 1), "blocks": blocks},
        {"address": 16384, "blocks": held},
    ]
    assert list(free_blocks(segments)) == [(4608, 1024), (16448, 32)]


class Library:
    """As much of the management library as a test wants; what it has not is missing, as in a newer one."""

    NVML_CLOCK_SM = 1

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.index = -1

    def nvmlInit(self) -> None:
        return

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        self.index = index
        return index

    def nvmlDeviceGetClockInfo(self, handle: int, clock: int) -> int:
        return 1980

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.1"


@pytest.mark.parametrize(("visible", "index"), [("", 0), ("2,3", 2), ("GPU-1f", 0)])
def test_a_newer_management_library_leaves_facts_unknown(
    monkeypatch: pytest.MonkeyPatch, visible: str, index: int
) -> None:
    library: Any = Library()
    monkeypatch.setitem(sys.modules, "pynvml", library)
    gpu = open_gpu(lambda _: None, visible)
    assert gpu is not None
    assert library.index == index
    told = gpu.describe()
    assert (told["gpu_driver"], told["gpu_sm_mhz"]) == ("580.1", "1980")
    assert told["gpu_temperature_c"] == told["gpu_processes"] == "unknown"
    assert gpu.trouble() == ""


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x


def test_an_oracle_that_the_device_has_no_room_for_runs_on_the_host() -> None:
    def full() -> nn.Module:
        raise torch.OutOfMemoryError("CUDA out of memory")

    x = torch.randn(8, generator=torch.Generator().manual_seed(0))
    expected = Oracle(full, "cpu:0", Doubled).judge(((x,), {}), {}, 0, {"output": 2 * x})["output"]
    assert expected.oracle
    assert expected.gold is not None
    assert torch.equal(expected.gold, 2 * x.double())
    assert Oracle(full, "cpu:0", Doubled).values(((x,), {}), {}, 0) is None
    with pytest.raises(NoRoom, match="no room on the device"):
        Oracle(full, "cpu:0").judge(((x,), {}), {}, 0, {"output": 2 * x})


@pytest.mark.parametrize(
    ("error", "memory"),
    [
        (torch.OutOfMemoryError("Tried to allocate"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (MemoryError(), True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
    ],
)
def test_a_library_that_finds_no_memory_says_so_in_words_of_its_own(error: BaseException, memory: bool) -> None:
    assert ran_out(error) is memory


def test_a_fingerprint_is_of_the_bytes_whatever_their_alignment() -> None:
    marks = Fingerprints()
    x = torch.randn(100_000)
    assert marks.of(x[1:]) == marks.of(x[1:].clone())
    changed = x.clone()
    changed[99_998] += 1
    assert marks.of(changed) != marks.of(x)


def test_triton_is_made_ready_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    active = SimpleNamespace(get_current_target=lambda: asked.append("target"))
    triton: Any = SimpleNamespace(runtime=SimpleNamespace(driver=SimpleNamespace(active=active)))
    monkeypatch.setitem(sys.modules, "triton", triton)
    assert warm_triton()
    assert asked == ["target"]
    triton.runtime.driver = None
    assert not warm_triton()
    monkeypatch.setitem(sys.modules, "triton", None)
    assert not warm_triton()


@pytest.mark.parametrize(("target", "user", "shown"), [("cuda", 1000, [1, 0]), ("cuda", 0, []), ("cpu", 1000, [])])
def test_memory_is_shown_only_while_the_driver_starts(
    monkeypatch: pytest.MonkeyPatch, target: str, user: int, shown: list[int]
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(limits.os, "geteuid", lambda: user)
    monkeypatch.setattr(limits.kernel, "prctl", lambda option, value=0: asked.append(value))
    with limits.shown_to_drivers(target):
        assert asked == shown[:1]
    assert asked == shown
