"""The schedule space of a kernel: the numbers that its code leaves open, with their choices and sensible first values.

Only knobs that matter for the form of the kernel are there; `emit/__init__.py` says what each form honours.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from egg.expert.ir import Reduce, Scan
from egg.expert.loops import Kernel, Native, Schedule, Template
from egg.expert.outputs import bytes_of, is_fresh, large_results, streamable
from egg.expert.templates import DIGIT_BITS, slices, template_flops
from egg.expert.work import kernel_flops
from egg.schema.candidate import KnobSpec
from egg.schema.device import Device
from egg.schema.graph import DTYPE_BYTES
from egg.schema.plan import ScheduleValue

_WAKE_MS = 0.02
"""Work of one thread, at least, that makes it worth waking the others."""
_LANES = (8, 16, 32, 64)
_TILES = (8, 16, 32, 64, 128, 256, 512)
_PLAIN_TILE = 256
_L1_SHARE = 0.5
"""Share of the first-level cache that the arrays of one tile may take."""
_LONG_SLICE = 1000
"""Elements from which on a sort gains more by fewer passes than it loses to clearing more counters."""
_DIGITS = KnobSpec(
    choices=DIGIT_BITS,
    stage="tiling",
    principle_id="tile-for-first-cache",
    doc="bits of a digit by which a sort moves all elements: fewer passes, or counters that fit the first cache",
)
_STREAM = KnobSpec(
    choices=(False, True),
    stage="memory",
    principle_id="stream-large-outputs",
    doc="whether outputs are written past the caches",
)

_HUGE_PAGES = KnobSpec(
    choices=(False, True),
    stage="memory",
    principle_id="huge-pages-for-large-outputs",
    doc="whether the system is asked for huge pages under large outputs",
)


def schedule(step: Native, device: Device, read_later: frozenset[str] = frozenset()) -> Schedule:
    """Returns the knobs of a kernel or template with the values to begin with.

    `read_later` names the values that later steps read.
    """
    space: dict[str, KnobSpec] = {}
    values: dict[str, ScheduleValue] = {}
    for name, value, knob in (
        _template_knobs(step, device)
        if isinstance(step, Template)
        else (*_knobs(step, device), *_memory_knobs(step, device, read_later))
    ):
        values[name], space[name] = value, knob
    return Schedule(values, space)


def _knobs(kernel: Kernel, device: Device) -> Iterable[tuple[str, ScheduleValue, KnobSpec]]:
    tile = 1
    if kernel.columns is not None:
        tile, knob = _tile(kernel, device)
        yield "tile", tile, knob
    elif any(stage.order for stage in kernel.stages):
        yield "lanes", _first_lanes(kernel, device), _lanes(kernel)
    if kernel.mapping == "inner" and device.cores > 1:
        yield "split", 0, _split(device)
        return
    yield from _shares(row_units(kernel, tile), serial_ms(kernel, device), device)


def _template_knobs(template: Template, device: Device) -> Iterable[tuple[str, ScheduleValue, KnobSpec]]:
    if template.function == "sort":
        long = template.arrays[0].shape[template.dim] >= _LONG_SLICE
        yield "digit_bits", DIGIT_BITS[long], _DIGITS
    yield from _shares(slices(template), template_flops(template) / _additions_per_ms(device), device)


def _memory_knobs(
    kernel: Kernel, device: Device, read_later: frozenset[str]
) -> Iterable[tuple[str, ScheduleValue, KnobSpec]]:
    large = large_results(kernel, device, read_later)
    if set(large) & set(streamable(kernel)):
        yield "stream", False, _STREAM
    if any(is_fresh(bytes_of(a)) for a in large):
        yield "huge_pages", True, _HUGE_PAGES


def _shares(rows: int, one_thread_ms: float, device: Device) -> Iterable[tuple[str, ScheduleValue, KnobSpec]]:
    """Yields the knobs that deal rows to threads."""
    if rows < 2 or device.cores < 2:
        return
    small = one_thread_ms < _WAKE_MS
    yield "threads", 1 if small else 0, _threads(device, small)
    if not small:
        yield "grain", *_grain(rows, device)


def row_units(kernel: Kernel, tile: int) -> int:
    """Returns how many rows, or tiles of columns, run in parallel."""
    outer = prod(a.extent for a in kernel.rows if a != kernel.columns)
    return outer * (-(-kernel.columns.extent // tile) if kernel.columns is not None else 1)


def serial_ms(kernel: Kernel, device: Device) -> float:
    """Returns the time of one thread, roughly: moving the arrays through the caches, or the arithmetic."""
    moved = sum(a.numel * DTYPE_BYTES[a.dtype] for a in kernel.arrays if a.place != "scratch")
    return max(moved / (device.cache_gbps * 1e6 / device.cores), kernel_flops(kernel) / _additions_per_ms(device))


def _additions_per_ms(device: Device) -> float:
    """Returns what one core does, vectorised."""
    return device.peak_tflops.get("float32", 0.05) * 1e9 / device.cores


def _threads(device: Device, small: bool) -> KnobSpec:
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n < device.cores]
    return KnobSpec(
        choices=(*counts, 0),
        stage="mapping",
        principle_id="small-work-few-threads" if small else "use-every-core",
        doc="threads that share the rows; 0 takes all",
    )


def _split(device: Device) -> KnobSpec:
    return KnobSpec(
        choices=(1, 0, 2 * device.cores, 4 * device.cores),
        stage="mapping",
        principle_id="split-when-rows-are-few",
        doc="parts of a row that run in parallel; 0 makes one for each core",
    )


def _grain(rows: int, device: Device) -> tuple[int, KnobSpec]:
    share = -(-rows // device.cores)
    choices = sorted({max(1, -(-share // parts)) for parts in (1, 4, 16, 64)})
    knob = KnobSpec(
        choices=tuple(choices), stage="mapping", principle_id="coarse-chunks", doc="rows, or tiles, of one chunk"
    )
    return choices[-1], knob


def _tile(kernel: Kernel, device: Device) -> tuple[int, KnobSpec]:
    assert kernel.columns is not None
    extent = kernel.columns.extent
    choices = tuple(t for t in _TILES if t < extent) or (extent,)
    if extent < _TILES[-1] and extent not in choices:
        choices = (*choices, extent)
    plain = all(c.how is None for s in kernel.stages for c in s.computes) and not kernel.tail
    wish = _PLAIN_TILE if plain else _fitting_tile(kernel, device)
    fitting = [t for t in choices if t <= wish] or [choices[0]]
    knob = KnobSpec(
        choices=choices, stage="tiling", principle_id="tile-for-first-cache", doc="columns that are worked on together"
    )
    return _with_parallel_tiles(kernel, fitting, device), knob


def _fitting_tile(kernel: Kernel, device: Device) -> int:
    """Returns the columns whose scratch, and a line of every other array, fit the first-level cache."""
    scratch = sum(a.numel * DTYPE_BYTES[a.dtype] for a in kernel.arrays if a.place == "scratch")
    streams = sum(DTYPE_BYTES[a.dtype] for a in kernel.arrays if a.place != "scratch")
    return max(16, min(64, int(device.l1_bytes * _L1_SHARE) // max(scratch + streams, 1)))


def _with_parallel_tiles(kernel: Kernel, fitting: list[int], device: Device) -> int:
    """Returns the largest fitting tile that leaves work for every core, else the largest one of at least a vector."""
    enough = [t for t in fitting if row_units(kernel, t) >= device.cores]
    return enough[-1] if enough else fitting[-1]


def _lanes(kernel: Kernel) -> KnobSpec:
    reduces = any(isinstance(c.how, Reduce | Scan) for s in kernel.stages for c in s.computes)
    return KnobSpec(
        choices=_LANES,
        stage="tiling",
        principle_id="independent-partial-results" if reduces else "unroll-short-loops",
        doc="partial results of a reduction, and elements of the vectorised loop that are worked on together",
    )


def _first_lanes(kernel: Kernel, device: Device) -> int:
    """Returns four vectors, or fewer where the vectorised loops are short."""
    longest = max(stage.order[-1].extent for stage in kernel.stages if stage.order)
    wish = 4 * device.vector_bytes // 4
    fitting = [n for n in _LANES if n <= min(wish, longest)]
    return fitting[-1] if fitting else _LANES[0]
