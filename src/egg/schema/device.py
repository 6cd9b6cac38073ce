"""Where it runs, and how fast that machine is."""

from __future__ import annotations

from typing import Literal

from egg.schema.base import Record


class Device(Record):
    """A processor with its measured limits."""

    name: str
    kind: Literal["cpu", "cuda"]
    cores: int
    """Cores (CPU) or streaming multiprocessors (GPU) that work may use."""
    vector_bytes: int
    """Bytes of one vector register (CPU), or of the widest load of one thread (GPU)."""
    isa: str
    """Instruction set that kernels are built for: `avx2`, `avx512`, `neon`, `sm_90`."""
    copy_gbps: float
    """Memory traffic of a large copy, read plus written, in 1e9 bytes a second."""
    cache_gbps: float
    """The same for a copy that stays in the caches of all cores."""
    peak_tflops: dict[str, float]
    """Dense multiply-add throughput by dtype, in 1e12 FLOPs a second."""
    launch_us: float
    """Cost of one library operator on an empty tensor, in microseconds."""
    l1_bytes: int
    """Data cache of one core."""
    l2_bytes: int
    """Second-level cache of one core (CPU), or the shared one (GPU)."""
    l3_bytes: int
    """Last-level cache; 0 where there is none."""
    source: Literal["measured", "sheet"]
