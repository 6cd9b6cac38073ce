"""Predicted milliseconds: of a layout with its schedules, and of the graph run operator by operator.

Both go by the same model, so that their ratio is a predicted speedup: each step takes the longer of moving its bytes
and computing, plus what starting it costs. The model orders candidates; measurements decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from egg.expert.groups.axes import accesses
from egg.expert.ir import loads
from egg.expert.loops import Kernel, Layout, Native, Schedule, Stage, Step, Template
from egg.expert.outputs import bytes_of, is_fresh, streamable
from egg.expert.rewrites.costs import PRODUCTS, node_bytes, node_flops, product_rows
from egg.expert.rewrites.matching import Facts, base
from egg.expert.schedule import row_units
from egg.expert.templates import slices, template_flops
from egg.expert.work import op_flops, stage_flops
from egg.schema.device import Device
from egg.schema.graph import DTYPE_BYTES, Graph, Node, node_refs

NATIVE_CALL_SHARE = 0.3
"""Cost of a native call of several kernels against that of a library operator."""
TEAM_US = 4.0
"""Cost of starting and ending a team of threads."""
_ONE_THREAD_SHARE = 0.6
"""Share of the memory bandwidth that one thread reaches."""
_PAGE_BYTES, _HUGE_PAGE_BYTES = 4 * 2**10, 2 * 2**20
_FAULT_US = 2.0
"""What the system takes for the first touch of a page, beside clearing it."""
_CLEARING_GBPS = 6.0
"""How fast one thread clears new pages."""
_COPY_TRAFFIC = 1.5
"""What really crosses the memory bus in a copy, against what it reads and writes."""
_SCATTER_FLOPS = 6
"""Work of one element that a vectorised loop has to gather or scatter, in additions."""
_ORDER_FLOPS = {"sort": 500, "argsort": 500, "scatter": 10}
"""Half of the work of library operators that compare or move single elements, for each element, in additions."""
_MATVEC_SHARE = 0.22
"""Share of the peak that a library reaches for one vector by a matrix in the caches."""
_BLOCKED_ROWS = 64
"""Rows with which a library product comes close to the peak."""
_PASSES = {"layer_norm": 3, "batch_norm": 3, "group_norm": 3, "instance_norm": 3, "softmax": 2, "log_softmax": 2}
"""Times that a library operator goes over its input when that does not fit the caches."""


def predict_ms(layout: Layout, schedules: Mapping[str, Schedule], graph: Graph, device: Device) -> float:
    """Returns milliseconds for one call of all steps, one after the other; `graph` is what was lowered."""
    facts = Facts(graph)
    total_ms, previous = 0.0, None
    for step in layout.steps:
        total_ms += step_ms(step, schedules, facts, device)
        if isinstance(step, Native) and not isinstance(previous, Native):
            total_ms += NATIVE_CALL_SHARE * device.launch_us * 1e-3
        previous = step
    return max(total_ms, 1e-6)


def step_ms(step: Step, schedules: Mapping[str, Schedule], facts: Facts, device: Device) -> float:
    """Returns milliseconds for one kernel, template or library call; that of a library call includes starting it."""
    if isinstance(step, Native):
        return _native_ms(step, schedules.get(step.name, Schedule()), device)
    return predict_library_ms(step.node, facts, device)


def predict_library_ms(node: Node, facts: Facts, device: Device) -> float:
    """Returns milliseconds for one operator as a library call; 0 for a view.

    An operator that reads values the graph does not have is judged by what it writes.
    """
    if not all(name in facts.specs for name in node_refs(node)):
        written = sum(v.spec.bytes for v in node.outputs if v.spec is not None)
        return device.launch_us * 1e-3 + moving_ms(2 * written, device)
    moved = node_bytes(facts, node)
    if not moved:
        return 0.0
    name = base(node)
    out = node.outputs[0].spec
    largest = max((facts.specs[n].numel for n in node_refs(node)), default=0)
    flops = max(
        node_flops(facts, node),
        2 * _ORDER_FLOPS.get(name, op_flops(name)) * max(largest, out.numel if out is not None else 0),
    )
    moved *= 1 if _fits(moved, device) else _PASSES.get(name, 1)
    dtype = out.dtype if out is not None else "float32"
    peak = _peak_tflops(dtype, device) * _peak_share(node)
    fresh_ms = _fresh_ms(v.spec.bytes for v in node.outputs if v.spec is not None) / device.cores
    return device.launch_us * 1e-3 + max(moving_ms(moved, device), flops / (peak * 1e9)) + fresh_ms


def predict_reference_ms(graph: Graph, device: Device) -> float:
    """Returns milliseconds for the graph run as it stands, one library call a node."""
    facts = Facts(graph)
    return max(sum(predict_library_ms(node, facts, device) for node in graph.nodes), 1e-6)


def moving_ms(moved_bytes: float, device: Device, threads: int = 0) -> float:
    """Returns milliseconds for so many bytes, from memory or, where they fit, from the caches."""
    if _fits(moved_bytes, device):
        share = threads / device.cores if threads else 1.0
        return moved_bytes / (device.cache_gbps * share * 1e6)
    share = _ONE_THREAD_SHARE if threads == 1 and device.cores > 1 else 1.0
    return moved_bytes / (device.copy_gbps * share * 1e6)


def _fresh_ms(written_bytes: Iterable[int], page_bytes: int = _PAGE_BYTES) -> float:
    """Returns milliseconds of one thread for what the system does at the first touch of new pages."""
    fresh = sum(filter(is_fresh, written_bytes))
    return fresh / page_bytes * _FAULT_US * 1e-3 + fresh / (_CLEARING_GBPS * 1e6)


def _past_caches_bytes(kernel: Native) -> int:
    """Returns the bytes whose lines an ordinary store reads first.

    New pages come cleared, through the caches: there an ordinary store finds its line.
    """
    if isinstance(kernel, Template):
        return 0
    return sum(bytes_of(a) for a in streamable(kernel) if not is_fresh(bytes_of(a)))


def _past_caches_ms(moved_bytes: float, past_bytes: int, device: Device, threads: int) -> float:
    """Returns milliseconds where `past_bytes` of all moved ones are written past the caches.

    An ordinary store reads its line first, unless that is cached: those bytes cross the memory bus twice. The copy
    that the bandwidth was measured by does so too, and counts its stores once.
    """
    if not _fits(moved_bytes, device):
        return moving_ms(moved_bytes, device, threads) * moved_bytes / (moved_bytes + past_bytes)
    written_ms = past_bytes / (device.copy_gbps * _COPY_TRAFFIC * 1e6)
    return moving_ms(moved_bytes - past_bytes, device, threads) + written_ms


def _native_ms(kernel: Native, schedule: Schedule, device: Device) -> float:
    threads = _threads(kernel, schedule, device)
    dtype = "float64" if any(a.dtype == "float64" for a in kernel.arrays) else "float32"
    additions_per_ms = _peak_tflops(dtype, device) * 1e9 / 2 * threads / device.cores
    starting_ms = TEAM_US * 1e-3 if threads > 1 else 0.0
    passes = _passes(kernel, device)
    moved = sum(moved for moved, _ in passes)
    past = _past_caches_bytes(kernel) if schedule.values.get("stream") else 0
    moving = _past_caches_ms(moved, past, device, threads) if past else moving_ms(moved, device, threads)
    written = [bytes_of(a) for a in kernel.arrays if a.place == "output" and not a.over]
    page_bytes = _HUGE_PAGE_BYTES if schedule.values.get("huge_pages") else _PAGE_BYTES
    spent = sum(max(moving * part / max(moved, 1), work / additions_per_ms) for part, work in passes)
    return starting_ms + spent + _fresh_ms(written, page_bytes) / threads


def _threads(step: Native, schedule: Schedule, device: Device) -> int:
    if isinstance(step, Kernel) and step.mapping == "inner":
        return min(int(schedule.values.get("split", 0)) or device.cores, device.cores)
    tile, grain = int(schedule.values.get("tile", 1)), int(schedule.values.get("grain", 1))
    rows = slices(step) if isinstance(step, Template) else row_units(step, tile)
    chunks = -(-rows // max(grain, 1))
    wanted = int(schedule.values.get("threads", 0)) or device.cores
    return max(1, min(chunks, wanted, device.cores))


def _passes(step: Native, device: Device) -> list[tuple[int, int]]:
    """Returns bytes between memory and caches, and additions, of what runs one after the other.

    That is the whole step, with every array moved once, but each stage where a row is too long for the caches.
    """
    sizes = {a.name: bytes_of(a) * (2 if a.over else 1) for a in step.arrays if a.place != "scratch"}
    total = sum(sizes.values())
    if isinstance(step, Template):
        return [(total, template_flops(step))]
    rows = max(prod(a.extent for a in step.rows), 1)
    work = [rows * (stage_flops(s) + _scatter_flops(step, s)) for s in step.stages]
    if total / rows <= device.l2_bytes:
        return [(total, sum(work))]
    return [(_stage_bytes(step, stage, sizes), flops) for stage, flops in zip(step.stages, work, strict=True)]


def _stage_bytes(kernel: Kernel, stage: Stage, sizes: Mapping[str, int]) -> int:
    """Returns the bytes of what a stage reads and writes; `sizes` are those of the arrays in memory."""
    points = prod(a.extent for a in (*kernel.rows, *stage.order))
    read = {load.source for compute in stage.computes for load in loads(compute.body)}
    dtype_bytes = {a.name: DTYPE_BYTES[a.dtype] for a in kernel.arrays}
    touched = read | {store.array for compute in stage.computes for store in compute.stores}
    return sum(min(size, points * dtype_bytes[name]) for name, size in sizes.items() if name in touched)


def _scatter_flops(kernel: Kernel, stage: Stage) -> int:
    """Returns the extra work of a stage, for one row, of accesses that the vectorised loop has to take one by one."""
    lane = kernel.columns or (stage.order[-1] if stage.order else None)
    if lane is None:
        return 0
    scattered = sum(1 for a in accesses(kernel, stage) if a.offset.coefficient(lane) not in (0, 1))
    return scattered * _SCATTER_FLOPS * prod(a.extent for a in stage.order)


def _fits(moved_bytes: float, device: Device) -> bool:
    return moved_bytes <= device.l3_bytes + device.cores * device.l2_bytes


def _peak_share(node: Node) -> float:
    """Returns the share of the peak that an operator reaches: a product with few rows can't keep its operands close."""
    out = node.outputs[0].spec
    if base(node) not in PRODUCTS or out is None:
        return 1.0
    rows = product_rows(base(node), out.shape)
    return min(1.0, max(_MATVEC_SHARE, rows**0.5 / _BLOCKED_ROWS**0.5))


def _peak_tflops(dtype: str, device: Device) -> float:
    return device.peak_tflops.get(dtype) or device.peak_tflops.get("float32", 0.05)
