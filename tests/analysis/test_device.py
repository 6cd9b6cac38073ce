"""The device record: measured, kept, or read from a sheet."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from egg.analysis.device import cached_device, device_sheet, measure_device
from egg.analysis.gpu import cached_gpu, measured_apart
from egg.errors import SandboxError, UsageError
from egg.schema.device import Device


class Ticks:
    """A clock that goes on by a second at each look."""

    def __init__(self) -> None:
        self.looks = itertools.count()

    def __call__(self) -> float:
        return float(next(self.looks))


def test_measured_figures_follow_from_the_clock() -> None:
    device = measure_device(Ticks())
    assert device.source == "measured"
    assert device.peak_tflops["float32"] == pytest.approx(2 * 768**3 / 1e12)
    assert device.peak_tflops["float64"] == pytest.approx(2 * 512**3 / 1e12)
    assert device.launch_us == pytest.approx(1 / 200 * 1e6)
    assert device.copy_gbps >= 2 * 2**26 / 1e9
    assert device.cores >= 1
    assert device.vector_bytes in (16, 32, 64)
    assert device.l1_bytes < device.l2_bytes


class Machine(Ticks):
    """A clock of a machine whose load changes: a look takes `step` seconds."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self.step = step

    def __call__(self) -> float:
        return super().__call__() * self.step


def test_the_first_looks_keep_the_best_and_then_the_record_stands(tmp_path: Path) -> None:
    busy = cached_device(tmp_path, Machine(step=8.0))
    idle = cached_device(tmp_path, Machine(step=1.0))
    assert idle.copy_gbps == pytest.approx(8 * busy.copy_gbps)
    assert idle.peak_tflops["float32"] == pytest.approx(8 * busy.peak_tflops["float32"])
    assert idle.launch_us == pytest.approx(busy.launch_us / 8)
    assert cached_device(tmp_path, Machine(step=4.0)) == idle
    unused = Machine(step=0.5)
    assert cached_device(tmp_path, unused) == idle
    assert next(unused.looks) == 0


def test_a_torn_file_is_measured_again(tmp_path: Path) -> None:
    first = cached_device(tmp_path / "devices", Ticks())
    (file,) = (tmp_path / "devices").glob("*.json")
    file.write_text(file.read_text()[:20])
    assert cached_device(tmp_path / "devices", Ticks()) == first
    assert not list((tmp_path / "devices").glob("*.tmp"))


def test_a_sheet_says_that_it_is_one() -> None:
    assert device_sheet("generic-cpu").source == "sheet"
    with pytest.raises(UsageError, match="'quantum': choose one of generic-cpu"):
        device_sheet("quantum")


def test_the_record_of_a_gpu_is_kept_by_its_name(tmp_path: Path) -> None:
    asked: list[str] = []

    def measure() -> Device:
        asked.append("measured")
        return device_sheet("generic-cpu").updated(kind="cuda", copy_gbps=100.0 + len(asked))

    found = [cached_gpu(tmp_path, "one GPU", measure) for _ in range(4)]
    assert [d.copy_gbps for d in found] == [101.0, 102.0, 103.0, 103.0]
    assert cached_gpu(tmp_path, "another GPU", measure).copy_gbps == 104.0


def test_a_gpu_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(SandboxError, match=r"the limits of the GPU could not be measured: \S.*"):
        measured_apart()
