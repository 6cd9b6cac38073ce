"""The device record: measured, kept, or read from a sheet."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from egg.analysis.device import cached_device, device_sheet, measure_device
from egg.errors import UsageError


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


def test_a_device_is_measured_once_and_again_when_its_file_is_torn(tmp_path: Path) -> None:
    clock = Ticks()
    first = cached_device(tmp_path / "devices", clock)
    looks = next(clock.looks)
    assert cached_device(tmp_path / "devices", clock) == first
    assert next(clock.looks) == looks + 1
    (file,) = (tmp_path / "devices").glob("*.json")
    file.write_text(file.read_text()[:20])
    assert cached_device(tmp_path / "devices", clock) == first
    assert not list((tmp_path / "devices").glob("*.tmp"))


def test_a_sheet_says_that_it_is_one() -> None:
    assert device_sheet("generic-cpu").source == "sheet"
    with pytest.raises(UsageError, match="'quantum': choose one of generic-cpu"):
        device_sheet("quantum")
