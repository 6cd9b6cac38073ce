"""The GPU: whether there is one, its driver, whether its counters may be read, how fast it is."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from egg.schema.checkup import Finding

DRIVER = Path("/proc/driver/nvidia")
_COPY_BYTES, _SIDE, _REPEATS = 2**30, 8192, 10


def graphics(folder: Path = DRIVER) -> Iterator[Finding]:
    """Yields a line for the devices, the driver and the profiler; needs torch."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        yield Finding(
            group="device", name="GPU", state="missing", said="PyTorch finds none",
            costs="only CPU kernels can be verified here",
            fix="use a machine with a GPU and a PyTorch built for it" if torch.version.cuda is None
            else "install the NVIDIA driver",
        )  # fmt: skip
        return
    names = ", ".join(torch.cuda.get_device_name(i) for i in range(count))
    yield Finding(group="device", name="GPU", state="ok", said=names)
    yield driver(folder)
    yield counters(folder, os.geteuid() == 0)


def driver(folder: Path = DRIVER) -> Finding:
    """Returns the version of the kernel's driver."""
    try:
        found = re.search(r"Kernel Module\D*([\d.]+)", (folder / "version").read_text())
    except OSError as error:
        return Finding(group="device", name="driver", state="unknown", said=f"{error}")
    return Finding(
        group="device", name="driver", state="ok" if found else "unknown", said=found[1] if found else "unknown"
    )


def counters(folder: Path, is_root: bool) -> Finding:
    """Returns whether this user may read the device's counters."""
    costs = "Nsight Compute can't say what binds a kernel; times and verdicts are as good"
    fix = "set NVreg_RestrictProfilingToAdminUsers=0 for the module nvidia, or run as root"
    try:
        restricted = re.search(r"RmProfilingAdminOnly: *(\d)", (folder / "params").read_text())
    except OSError as error:
        return Finding(
            group="device", name="profiler permission", state="unknown", said=f"{error}", costs=costs, fix=fix
        )
    if restricted is None:
        said = "the driver does not tell"
        return Finding(group="device", name="profiler permission", state="unknown", said=said, costs=costs, fix=fix)
    if restricted[1] == "0" or is_root:
        return Finding(group="device", name="profiler permission", state="ok", said="counters may be read")
    return Finding(
        group="device", name="profiler permission", state="missing", said="only root may read counters", costs=costs,
        fix=fix,
    )  # fmt: skip


def graphics_speed() -> Iterator[Finding]:
    """Yields bandwidth and matrix peaks of the first GPU, by the device's own events; needs one."""
    import torch

    yield Finding(
        group="measured",
        name="GPU copy",
        state="ok",
        said=f"{2 * _COPY_BYTES / _copy_ms() / 1e6:.0f} GB/s read and written",
    )
    for name in ("float32", "bfloat16", "float16"):
        left = torch.ones(_SIDE, _SIDE, dtype=getattr(torch, name), device="cuda")
        out = torch.empty_like(left)
        took_ms = _event_ms(lambda a=left, o=out: torch.mm(a, a, out=o))
        yield Finding(
            group="measured", name=f"GPU {name} matmul", state="ok", said=f"{2 * _SIDE**3 / took_ms / 1e9:.1f} TFLOP/s"
        )


def _copy_ms() -> float:
    import torch

    source = torch.empty(_COPY_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return _event_ms(lambda: target.copy_(source))


def _event_ms(work: Callable[[], Any]) -> float:
    """Returns the median time of a call by events, after two that warm up."""
    import torch

    times: list[float] = []
    for _ in range(_REPEATS + 2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return median(times[2:])
