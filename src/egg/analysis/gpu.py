"""The record of a GPU, by its own events, in a process that ends with the driver's context and the memory it took."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from egg.analysis.device import SPEND_S, kept_device, launch_us
from egg.errors import SandboxError
from egg.schema.base import content_hash
from egg.schema.device import Device

COPY_BYTES = 2**30
MATMUL_SIDE = {"float32": 8192, "float64": 4096, "bfloat16": 8192, "float16": 8192}
FORMAT = 1
"""Goes up when the measurement changes, so that old files are measured again."""
_NEAR_COPIES = 50
"""Copies within the cache that are timed together: one alone is shorter than its launch."""
_VECTOR_BYTES = 16
_LIMIT_S = 120.0
_MEASURE = "from egg.analysis.gpu import measure_gpu; print(measure_gpu().model_dump_json())"


def cached_gpu(folder: Path, name: str, measure: Callable[[], Device] | None = None) -> Device:
    """Returns the record from `folder` of the GPU that is called `name`, as `cached_device` does for the CPU.

    Raises SandboxError where it can't be measured.
    """
    key = content_hash(name, torch.__version__, str(torch.version.cuda), str(FORMAT))
    return kept_device(folder, key, measure or measured_apart)


def measured_apart() -> Device:
    """Returns the first GPU's record as a process of its own measures it now. Raises SandboxError."""
    command = [sys.executable, "-c", _MEASURE]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"the limits of the GPU could not be measured in {_LIMIT_S:g} s") from error
    if ended.returncode != 0:
        said = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        raise SandboxError(f"the limits of the GPU could not be measured: {said}")
    return Device.model_validate_json(ended.stdout)


def measure_gpu() -> Device:
    """Returns the record of the current CUDA device, measured now."""
    properties: Any = torch.cuda.get_device_properties(0)
    l2_bytes = int(properties.L2_cache_size)
    with torch.inference_mode():
        return Device(
            name=str(properties.name),
            kind="cuda",
            cores=int(properties.multi_processor_count),
            vector_bytes=_VECTOR_BYTES,
            isa=f"sm_{properties.major}{properties.minor}",
            copy_gbps=_copy_gbps(COPY_BYTES, 1),
            cache_gbps=_copy_gbps(l2_bytes // 4, _NEAR_COPIES),
            peak_tflops={dtype: _matmul_tflops(dtype, side) for dtype, side in MATMUL_SIDE.items()},
            launch_us=launch_us(torch.zeros(1, device="cuda")),
            l1_bytes=int(properties.shared_memory_per_multiprocessor),
            l2_bytes=l2_bytes,
            l3_bytes=0,
            source="measured",
        )


def _copy_gbps(size_bytes: int, copies: int) -> float:
    source = torch.ones(size_bytes, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)

    def copy() -> None:
        for _ in range(copies):
            target.copy_(source)

    return copies * 2 * size_bytes / _best_s(copy) / 1e9


def _matmul_tflops(dtype: str, side: int) -> float:
    left = torch.ones(side, side, dtype=getattr(torch, dtype), device="cuda")
    out = torch.empty_like(left)
    return 2 * side**3 / _best_s(lambda: torch.mm(left, left, out=out)) / 1e12


def _best_s(work: Callable[[], object]) -> float:
    """Returns the shortest of the calls that fit `SPEND_S`, after two that warm up; at least three count."""
    work()
    work()
    best_s, spent_s, calls = float("inf"), 0.0, 0
    while calls < 3 or spent_s < SPEND_S:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
        took_s = start.elapsed_time(end) / 1e3
        best_s, spent_s, calls = min(best_s, took_s), spent_s + took_s, calls + 1
    return best_s
