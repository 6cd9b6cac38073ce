"""How fast the processor is, and how steadily it runs."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from egg.protocols import Clock
from egg.schema.checkup import Finding
from egg.schema.device import Device

_WINDOWS, _TURNS = 200, 40_000
_STEADY_PCT = 5.0


def limits(device: Device) -> Iterator[Finding]:
    """Yields the processor with its measured bandwidth and matrix peaks."""
    said = f"{device.name}, {device.cores} cores in use, {device.isa}"
    yield Finding(group="device", name="CPU", state="ok", said=said)
    yield Finding(
        group="measured", name="memory copy", state="ok", said=f"{device.copy_gbps:.1f} GB/s read and written"
    )
    yield Finding(group="measured", name="cache copy", state="ok", said=f"{device.cache_gbps:.0f} GB/s")
    for dtype, peak in device.peak_tflops.items():
        yield Finding(group="measured", name=f"{dtype} matmul", state="ok", said=f"{1000 * peak:.1f} GFLOP/s")
    yield Finding(
        group="measured", name="operator call", state="ok", said=f"{device.launch_us:.2f} µs for an empty tensor"
    )


def clock_stability(clock: Clock) -> Finding:
    """Returns how much the time of one fixed piece of work scatters."""
    times = sorted(_window_s(clock) for _ in range(_WINDOWS))
    typical = median(times)
    spread_pct = 100 * (times[int(0.9 * _WINDOWS)] - times[int(0.1 * _WINDOWS)]) / typical
    said = f"{spread_pct:.1f} % from the 10th to the 90th percentile of {_WINDOWS} equal pieces of work"
    if spread_pct <= _STEADY_PCT:
        return Finding(group="measured", name="clock stability", state="ok", said=said)
    return Finding(
        group="measured", name="clock stability", state="missing", said=said,
        costs="intervals are wider, and small gains can't be told",
        fix="end other work, fix the clock frequency, use a machine that is not shared",
    )  # fmt: skip


def _window_s(clock: Clock) -> float:
    begin = clock()
    total = 0
    for i in range(_TURNS):
        total += i
    return clock() - begin
