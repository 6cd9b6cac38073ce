"""Named facts about a workload on a device, which principles test. `knowledge/facts.md` explains each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

from egg.analysis.costs import Totals
from egg.analysis.operators import LIBRARY, OpClass, base_name, class_of
from egg.analysis.traffic import footprint_bytes
from egg.schema.analysis import Fact, OpCost
from egg.schema.device import Device
from egg.schema.graph import Graph, Node, Ref, TensorSpec, node_refs

COUNTED: tuple[OpClass, ...] = (
    "pointwise", "reduction", "matmul", "conv", "attention", "recurrent", "norm", "softmax", "pool", "scan", "gather",
    "sort", "loss", "random", "copy", "view", "other",
)  # fmt: skip
"""Classes with a fact `<class>_ops` each."""

ROW_CLASSES = frozenset({"norm", "softmax", "scan", "sort"})
"""Need a whole row before the first element of the result is final."""

AFFINE = frozenset({"add", "sub", "rsub", "mul", "multiply", "div", "divide", "true_divide", "subtract"})
AVERAGE_POOLS = {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"}


def facts_of(graph: Graph, ops: Sequence[OpCost], totals: Totals, device: Device, training: bool) -> dict[str, Fact]:
    """Returns every fact by name."""
    return {
        **_device_facts(device, totals),
        **_total_facts(ops, totals, device),
        **_count_facts(graph),
        **_shape_facts(graph),
        **_pattern_facts(graph),
        **_dtype_facts(graph),
        **_intermediate_facts(graph, totals),
        "training": training,
        "mutates_state": bool(graph.mutations),
    }


def _device_facts(device: Device, totals: Totals) -> dict[str, Fact]:
    l2_bytes = device.l2_bytes * (device.cores if device.kind == "cpu" else 1)
    return {
        "device.kind": device.kind,
        "cores": device.cores,
        "isa": device.isa,
        "vector_bytes": device.vector_bytes,
        "cache_bytes": l2_bytes + device.l3_bytes,
        "fits_l2": totals.min_bytes <= l2_bytes,
        "fits_l3": totals.min_bytes <= l2_bytes + device.l3_bytes,
    }


def _total_facts(ops: Sequence[OpCost], totals: Totals, device: Device) -> dict[str, Fact]:
    work_us = sum(op.floor_ms for op in ops) * 1e3
    launch_us = sum(class_of(op.op) != "view" for op in ops) * device.launch_us
    return {
        "bound": totals.bound,
        "floor_us": totals.floor_ms * 1e3,
        "memory_floor_us": totals.memory_ms * 1e3,
        "flops": totals.flops,
        "min_bytes": totals.min_bytes,
        "traffic_bytes": sum(op.bytes for op in ops),
        "arithmetic_intensity": totals.arithmetic_intensity,
        "launch_share": launch_us / (launch_us + work_us) if launch_us else 0.0,
        "library_flops_share": _share(ops),
    }


def _share(ops: Sequence[OpCost]) -> float:
    total = sum(op.flops for op in ops)
    return sum(op.flops for op in ops if class_of(op.op) in LIBRARY) / total if total else 0.0


def _count_facts(graph: Graph) -> dict[str, Fact]:
    counts = Counter(class_of(node.op) for node in graph.nodes)
    parameters = {i.name for i in graph.inputs if i.kind != "input"}
    return {
        **{f"{kind}_ops": counts[kind] for kind in COUNTED},
        "op_count": sum(n for kind, n in counts.items() if kind != "view"),
        "library_ops": sum(counts[kind] for kind in LIBRARY),
        "row_ops": sum(counts[kind] for kind in ROW_CLASSES),
        "affine_ops": sum(_is_affine(node, parameters) for node in graph.nodes),
    }


def _is_affine(node: Node, parameters: set[str]) -> bool:
    """Returns whether a node scales or shifts by a number or a parameter."""
    if base_name(node.op) not in AFFINE or not node_refs(node):
        return False
    return any(not isinstance(a, Ref) or a.ref in parameters for a in node.args[:2])


def _shape_facts(graph: Graph) -> dict[str, Fact]:
    specs = graph.specs()
    rows = [_row_elements(node, specs) for node in graph.nodes]
    products = [_product_rows(node, specs) for node in graph.nodes if class_of(node.op) == "matmul"]
    outputs = [specs[name].numel for name in graph.output_names() if name in specs]
    return {
        "largest_row": max(rows, default=0),
        "matmul_rows_max": max(products, default=0),
        "output_elements": sum(outputs),
    }


def _row_elements(node: Node, specs: dict[str, TensorSpec]) -> int:
    """Returns the elements that go into one result of a row operator, reduction or loss; 0 for other nodes."""
    kind, refs = class_of(node.op), node_refs(node)
    if kind not in (*ROW_CLASSES, "reduction", "loss") or not refs:
        return 0
    spec = specs[refs[0]]
    if kind in ("reduction", "loss"):
        results = node.outputs[0].spec
        return spec.numel // results.numel if results is not None and results.numel else 0
    if kind == "norm":
        return _norm_row(node, spec)
    dim = next((a for a in node.args[1:] if isinstance(a, int) and not isinstance(a, bool)), -1)
    return spec.shape[dim] if spec.shape else 1


def _norm_row(node: Node, spec: TensorSpec) -> int:
    name, argument = base_name(node.op), node.args[1] if len(node.args) > 1 else None
    if "layer_norm" in name or "rms_norm" in name:
        return prod(a for a in argument if isinstance(a, int)) if isinstance(argument, tuple) else 0
    if "batch_norm" in name:
        return spec.numel // spec.shape[1]
    groups = argument if name == "group_norm" and isinstance(argument, int) else spec.shape[1]
    return spec.numel // (spec.shape[0] * groups)


def _product_rows(node: Node, specs: dict[str, TensorSpec]) -> int:
    """Returns the rows of a product's result: of one matrix where both operands are batches, else of all together."""
    shape = node.outputs[0].spec.shape if node.outputs[0].spec is not None else ()
    ranks = [len(specs[name].shape) for name in node_refs(node) if name in specs]
    batched = base_name(node.op) in ("matmul", "bmm", "baddbmm") and min(ranks, default=0) > 2
    return prod(shape[-2:-1] if batched else shape[:-1])


def _pattern_facts(graph: Graph) -> dict[str, Fact]:
    names = Counter(base_name(node.op) for node in graph.nodes)
    train = any(_trains(node) for node in graph.nodes)
    evals = any("batch_norm" in node.op and not _trains(node) for node in graph.nodes)
    return {
        "has_batch_norm_train": train,
        "has_batch_norm_eval": evals,
        "has_dropout": names["native_dropout"] + names["dropout"] > 0,
        "mean_after_linear": _sum_after(graph, "matmul", "mean"),
        "sum_after_linear": _sum_after(graph, "matmul", "sum"),
        "mean_after_conv": _sum_after(graph, "conv", "mean"),
        "sum_after_conv": _sum_after(graph, "conv", "sum"),
    }


def _trains(node: Node) -> bool:
    return "batch_norm" in node.op and len(node.args) > 5 and node.args[5] is True


def _sum_after(graph: Graph, kind: OpClass, reduction: str) -> bool:
    """Returns whether a sum or mean follows a product or convolution, with views and affine steps between at most."""
    producers = graph.producers()
    parameters = {i.name for i in graph.inputs if i.kind != "input"}
    names = {reduction} | (AVERAGE_POOLS if reduction == "mean" else set())
    for node in graph.nodes:
        if base_name(node.op) not in names:
            continue
        at = producers.get(node_refs(node)[0])
        while at is not None and (class_of(at.op) == "view" or _is_affine(at, parameters)):
            at = next((producers[ref] for ref in node_refs(at) if ref in producers), None)
        if at is not None and class_of(at.op) == kind:
            return True
    return False


def _dtype_facts(graph: Graph) -> dict[str, Fact]:
    dtypes = {spec.dtype for spec in graph.specs().values()}
    return {f"has_{dtype}": dtype in dtypes for dtype in ("float64", "float32", "float16", "bfloat16", "int64", "bool")}


def _intermediate_facts(graph: Graph, totals: Totals) -> dict[str, Fact]:
    """Returns what is written by one operator only to be read by another."""
    producers, specs = graph.producers(), graph.specs()
    outputs = set(graph.output_names())
    between: dict[str, int] = {}
    fusable: dict[str, int] = {}
    for node in graph.nodes:
        for ref in node_refs(node):
            maker = producers.get(ref)
            if maker is None or ref not in specs or ref in outputs or class_of(maker.op) == "view":
                continue
            between[ref] = footprint_bytes(specs[ref])
            if class_of(maker.op) not in LIBRARY or class_of(node.op) not in LIBRARY:
                fusable[ref] = between[ref]
    written = sum(between.values())
    return {
        "intermediate_bytes": written,
        "fusable_bytes": sum(fusable.values()),
        "intermediate_bytes_share": written / (written + totals.min_bytes) if written + totals.min_bytes else 0.0,
    }
