"""The machine's record: measured a few times, kept in a cache folder."""

from __future__ import annotations

import json
import os
import platform
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import torch
from filelock import FileLock

from egg.errors import UsageError
from egg.schema.base import content_hash
from egg.schema.device import Device

Clock = Callable[[], float]
"""Monotonic seconds."""

SPEND_S = 0.15
"""Seconds for each measurement; there are six."""

ONE_THREAD_BYTES = 2**17
"""A copy of this size stays on one thread: torch shares out work from 32,768 elements on."""

LOOKS = 3
"""Calls that measure, before the record stands."""

FORMAT = 2
"""Goes up when the measurement changes, so that old files are measured again."""

MATMUL_SIDE = {"float32": 768, "float64": 512, "bfloat16": 256}
"""Side of the square product that shows the peak of each dtype."""

VECTOR_BYTES = {"AVX2": 32, "AVX512": 64, "SVE256": 32}
"""Bytes of a vector register by torch's name of the CPU capability; 16 otherwise."""

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def cached_device(folder: Path, clock: Clock = time.perf_counter) -> Device:
    """Returns this machine's record from `folder`.

    The file is found by processor, cores, threads and torch version. The first `LOOKS` calls measure, about 1 s each,
    and keep the best of every figure: a busy machine only ever looks slower than it is. Processes that ask at the same
    time measure one after the other, never at once.
    """
    return kept_device(folder, _machine_key(), lambda: measure_device(clock))


def kept_device(folder: Path, key: str, measure: Callable[[], Device]) -> Device:
    """Returns the record that `folder` keeps under a key, or the better of that and what `measure` gives now."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{key}.json"
    with FileLock(path.with_suffix(".lock")):
        kept = _kept(path)
        if kept is not None and kept.looks >= LOOKS:
            return kept.device
        seen = measure()
        now = _Kept(looks=1, device=seen) if kept is None else _Kept(kept.looks + 1, _better(kept.device, seen))
        scratch = path.with_suffix(".tmp")
        scratch.write_text(json.dumps({"looks": now.looks, "device": now.device.model_dump(mode="json")}, indent=2))
        scratch.replace(path)
    return now.device


@dataclass(frozen=True)
class _Kept:
    looks: int
    device: Device


def _kept(path: Path) -> _Kept | None:
    """Returns what the file holds; None where it is missing, cut short or of another version."""
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text())
        return _Kept(int(content["looks"]), Device.model_validate(content["device"]))
    except (ValueError, KeyError, TypeError):  # pydantic's and json's errors are ValueErrors
        return None


def _better(one: Device, other: Device) -> Device:
    """Returns the record with the better of every measured figure."""
    return one.updated(
        copy_gbps=max(one.copy_gbps, other.copy_gbps),
        cache_gbps=max(one.cache_gbps, other.cache_gbps),
        peak_tflops={dtype: max(peak, other.peak_tflops[dtype]) for dtype, peak in one.peak_tflops.items()},
        launch_us=min(one.launch_us, other.launch_us),
    )


def measure_device(clock: Clock = time.perf_counter) -> Device:
    """Returns this machine's record, measured now; cache sizes come from the system, or from the sheet."""
    fallback = device_sheet("generic-cpu")
    cores = usable_cores()
    capability = torch.backends.cpu.get_cpu_capability()
    l1, l2, l3 = (_cache_bytes(level) for level in (1, 2, 3))
    l1, l2 = l1 or fallback.l1_bytes, l2 or fallback.l2_bytes
    far_bytes = min(max(4 * l3, 2**26), 2**28)
    near_bytes = min(l2 // 4, ONE_THREAD_BYTES)  # source and target fill half of the second-level cache
    with torch.inference_mode():
        return Device(
            name=cpu_name(),
            kind="cpu",
            cores=cores,
            vector_bytes=VECTOR_BYTES.get(capability, 16),
            isa="generic" if capability == "DEFAULT" else capability.lower(),
            copy_gbps=_copy_gbps(far_bytes, clock),
            cache_gbps=cores * _copy_gbps(near_bytes, clock),
            peak_tflops={dtype: _matmul_tflops(dtype, side, clock) for dtype, side in MATMUL_SIDE.items()},
            launch_us=launch_us(torch.empty(0), clock),
            l1_bytes=l1,
            l2_bytes=l2,
            l3_bytes=l3,
            source="measured",
        )


def device_sheet(name: str) -> Device:
    """Returns the device that a sheet describes. Raises UsageError with the names that exist."""
    folder = resources.files("egg") / "knowledge" / "devices"
    sheet = folder / f"{name}.toml"
    if not sheet.is_file():
        known = sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))
        raise UsageError(f"device sheet {name!r}: choose one of {', '.join(known)}")
    return Device.model_validate(tomllib.loads(sheet.read_text()))


def _best_s(work: Callable[[], object], clock: Clock) -> float:
    """Returns the shortest of the calls that fit `SPEND_S`, after two that warm up; at least three count."""
    work()
    work()
    begin = clock()
    best, calls = float("inf"), 0
    while calls < 3 or clock() - begin < SPEND_S:
        start = clock()
        work()
        best, calls = min(best, clock() - start), calls + 1
    return best


def _copy_gbps(size_bytes: int, clock: Clock) -> float:
    source = torch.ones(size_bytes // 4)
    target = torch.empty_like(source)
    return 2 * size_bytes / _best_s(lambda: target.copy_(source), clock) / 1e9


def _matmul_tflops(dtype: str, side: int, clock: Clock) -> float:
    left = torch.ones(side, side, dtype=getattr(torch, dtype))
    out = torch.empty_like(left)
    return 2 * side**3 / _best_s(lambda: torch.mm(left, left, out=out), clock) / 1e12


def launch_us(operand: torch.Tensor, clock: Clock = time.perf_counter) -> float:
    """Returns the microseconds that the host takes for one operator on a tensor of no work to speak of."""
    calls = 200

    def launch() -> None:
        for _ in range(calls):
            torch.neg(operand)

    return _best_s(launch, clock) / calls * 1e6


def usable_cores() -> int:
    """Returns the cores that torch's threads may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(torch.get_num_threads(), allowed))


def _machine_key() -> str:
    capability = torch.backends.cpu.get_cpu_capability()
    parts = (cpu_name(), str(usable_cores()), str(torch.get_num_threads()), torch.__version__, capability, str(FORMAT))
    return content_hash(*parts)


def cpu_name() -> str:
    """Returns the processor's name as the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cache_bytes(level: int) -> int:
    """Returns the size of one data or unified cache of the first core; 0 where the system does not tell."""
    for index in sorted(CACHES.glob("index*")):
        kind, size = (index / "type").read_text().strip(), (index / "size").read_text().strip()
        if kind != "Instruction" and int((index / "level").read_text()) == level:
            unit = {"K": 2**10, "M": 2**20, "G": 2**30}.get(size[-1:], 1)
            return int(size.rstrip("KMG")) * unit
    return 0
