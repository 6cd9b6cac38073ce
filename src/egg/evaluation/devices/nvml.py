"""What NVIDIA's management library says of a GPU to the caller, who makes no context. Optional: without it, unknown."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from egg.schema.evaluation import UNKNOWN

LEAST_CLOCK_SHARE = 0.75
"""Of the clock at the start, below which what was timed does not count."""
_SLOWDOWN = {
    0x8: "hardware slowdown", 0x20: "software thermal limit", 0x40: "hardware thermal limit", 0x80: "power brake",
}  # fmt: skip
_WAIT_S = 0.5
_SETTLE_STEP_S, _SETTLE_STEPS = 0.1, 50


class Gpu:
    """Implements `Conditions` for one GPU, and describes it."""

    def __init__(self, library: Any, sleep: Callable[[float], None], index: int = 0) -> None:
        self._nvml = library
        self._sleep = sleep
        self._handle = library.nvmlDeviceGetHandleByIndex(index)
        self._start_mhz: int | None = None

    def trouble(self) -> str:
        """Returns why the GPU runs slowly for reasons of its own; empty where it does not, or tells nothing."""
        try:
            now_mhz = int(self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM))
            reasons = int(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))
        except (self._nvml.NVMLError, AttributeError):  # newer libraries drop old names
            return ""
        if found := [text for bit, text in _SLOWDOWN.items() if reasons & bit]:
            return ", ".join(found)
        if self._start_mhz is None:
            self._start_mhz = now_mhz
        if now_mhz < LEAST_CLOCK_SHARE * self._start_mhz:
            return f"SM clock at {now_mhz} MHz of {self._start_mhz} MHz at the start"
        return ""

    def wait(self) -> None:
        """Gives the GPU time to recover."""
        self._sleep(_WAIT_S)

    def used_bytes(self) -> int | None:
        """Returns the memory of the GPU that is taken by anybody; None where it does not tell."""
        try:
            return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used)
        except self._nvml.NVMLError:
            return None

    def settle(self) -> None:
        """Returns once memory that ended processes held has come back, which takes a while after they are gone."""
        before = self.used_bytes()
        for _ in range(_SETTLE_STEPS):
            self._sleep(_SETTLE_STEP_S)
            now = self.used_bytes()
            if before is None or now is None or now >= before:
                return
            before = now

    def describe(self) -> dict[str, str]:
        """Returns driver, clocks, power cap, temperature, throttle reasons and the number of other processes."""
        nvml, handle = self._nvml, self._handle
        return {
            "gpu_driver": self._read(lambda: nvml.nvmlSystemGetDriverVersion()),
            "gpu_sm_mhz": self._read(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            "gpu_sm_max_mhz": self._read(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)),
            "gpu_memory_mhz": self._read(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
            "gpu_power_cap_mw": self._read(lambda: nvml.nvmlDeviceGetPowerManagementLimit(handle)),
            "gpu_temperature_c": self._read(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            "gpu_throttle_reasons": self._read(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
            "gpu_processes": self._read(lambda: len(nvml.nvmlDeviceGetComputeRunningProcesses(handle))),
        }

    def _read(self, function: Callable[[], Any]) -> str:
        try:
            value = function()
        except (self._nvml.NVMLError, AttributeError):
            return UNKNOWN
        return value.decode() if isinstance(value, bytes) else str(value)


def open_gpu(sleep: Callable[[float], None], visible: str = "") -> Gpu | None:
    """Returns the first GPU that work may use; None where the library is not installed or sees none.

    `visible` is what CUDA_VISIBLE_DEVICES says; the library itself goes by the number of the slot.
    """
    try:
        library: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        library.nvmlInit()
        first = visible.partition(",")[0].strip()
        return Gpu(library, sleep, int(first) if first.isdecimal() else 0)
    except library.NVMLError:
        return None


DESCRIBED = (
    "gpu_driver", "gpu_sm_mhz", "gpu_sm_max_mhz", "gpu_memory_mhz", "gpu_power_cap_mw", "gpu_temperature_c",
    "gpu_throttle_reasons", "gpu_processes",
)  # fmt: skip


def preflight(gpu: Gpu | None) -> dict[str, str]:
    """Returns the facts of a GPU before anything is timed; `unknown` for each where there is nobody to ask."""
    return gpu.describe() if gpu is not None else dict.fromkeys(DESCRIBED, UNKNOWN)
