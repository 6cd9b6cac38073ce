"""Costs of a graph on a device: FLOPs, bytes, roofline floors and what binds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from egg.analysis.flops import node_flops
from egg.analysis.operators import LIBRARY, class_of
from egg.analysis.traffic import minimal_bytes, node_bytes
from egg.schema.analysis import Bound, OpCost
from egg.schema.device import Device
from egg.schema.graph import Graph, Node


@dataclass(frozen=True)
class Totals:
    """Costs of a whole graph, computed as one: only what enters and leaves must move."""

    flops: int
    min_bytes: int
    arithmetic_intensity: float
    memory_ms: float
    """Time for `min_bytes` alone; no rewrite goes below it, while algebra may remove FLOPs."""
    floor_ms: float
    bound: Bound


def op_costs(graph: Graph, device: Device) -> tuple[OpCost, ...]:
    """Returns the cost of each node run alone, in order."""
    specs = graph.specs()
    return tuple(_op_cost(node, node_flops(node, specs), node_bytes(node, specs), device) for node in graph.nodes)


def total_costs(graph: Graph, ops: Sequence[OpCost], device: Device) -> Totals:
    """Returns the costs of the graph as one.

    The floor adds the compute time of the operators, each at the peak of its dtype. The task is bound by launches
    where starting its operators one by one takes longer than the floor.
    """
    flops = sum(op.flops for op in ops)
    moved = minimal_bytes(graph)
    memory_ms = _memory_ms(moved, device)
    compute_ms = sum(_compute_ms(op.flops, node, device) for op, node in zip(ops, graph.nodes, strict=True))
    floor_ms = max(memory_ms, compute_ms)
    launches = sum(class_of(node.op) != "view" for node in graph.nodes)
    bound = _bound(memory_ms, compute_ms, launches * device.launch_us / 1e3)
    return Totals(flops, moved, flops / moved if moved else 0.0, memory_ms, floor_ms, bound)


def dtype_of(node: Node) -> str:
    """Returns the dtype of the first floating result, else of the first tensor."""
    dtypes = [v.spec.dtype for v in node.outputs if v.spec is not None]
    return next((d for d in dtypes if "float" in d), dtypes[0] if dtypes else "float32")


def bandwidth_gbps(moved_bytes: int, device: Device) -> float:
    """Returns the bandwidth for a working set: that of the caches where it fits them."""
    caches = device.l3_bytes + device.l2_bytes * (device.cores if device.kind == "cpu" else 1)
    return max(device.cache_gbps, device.copy_gbps) if moved_bytes <= caches else device.copy_gbps


def _op_cost(node: Node, flops: int, moved: int, device: Device) -> OpCost:
    memory_ms = _memory_ms(moved, device)
    compute_ms = _compute_ms(flops, node, device)
    return OpCost(
        name=node.name,
        op=node.op,
        flops=flops,
        bytes=moved,
        arithmetic_intensity=flops / moved if moved else 0.0,
        floor_ms=max(memory_ms, compute_ms),
        bound=_bound(memory_ms, compute_ms, device.launch_us / 1e3),
    )


def _bound(memory_ms: float, compute_ms: float, launch_ms: float) -> Bound:
    if max(memory_ms, compute_ms) < launch_ms:
        return "launch"
    return "compute" if compute_ms > memory_ms else "memory"


def _memory_ms(moved: int, device: Device) -> float:
    return moved / (bandwidth_gbps(moved, device) * 1e6)


def _compute_ms(flops: int, node: Node, device: Device) -> float:
    """Returns the time at the peak; half types also run at the float32 peak, so the higher one is the limit."""
    dtype, peaks = dtype_of(node), device.peak_tflops
    if dtype == "float64":
        peak = peaks["float64"]
    else:
        peak = max(peaks["float32"], peaks.get(dtype, 0.0) if class_of(node.op) in LIBRARY else 0.0)
    return flops / (peak * 1e9)
