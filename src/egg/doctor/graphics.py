"""The GPU: whether there is one, its driver, whether its counters may be read, how fast it is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from egg.schema.checkup import Finding
from egg.schema.device import Device

DRIVER = Path("/proc/driver/nvidia")


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
        found = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", (folder / "version").read_text())
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


def graphics_speed(device: Device) -> Iterator[Finding]:
    """Yields bandwidths and matrix peaks of a GPU."""
    copies = f"{device.copy_gbps:.0f} GB/s read and written", f"{device.cache_gbps:.0f} GB/s"
    yield Finding(group="measured", name="GPU copy", state="ok", said=copies[0])
    yield Finding(group="measured", name="GPU cache copy", state="ok", said=copies[1])
    for dtype, peak in device.peak_tflops.items():
        yield Finding(group="measured", name=f"GPU {dtype} matmul", state="ok", said=f"{peak:.1f} TFLOP/s")
