"""What a layout should take: the longer of moving bytes and computing for each step, plus what its call costs."""

from __future__ import annotations

from egg.expert.loops import Kernel, Layout, Step
from egg.expert.rewrites.costs import VIEWS, node_bytes, node_flops
from egg.expert.rewrites.matching import Facts, base
from egg.expert.work import kernel_flops
from egg.schema.device import Device
from egg.schema.graph import DTYPE_BYTES, Graph, Node, node_refs

WORK = {
    **dict.fromkeys(("div", "sqrt", "rsqrt", "reciprocal", "layer_norm", "group_norm", "batch_norm"), 4),
    **dict.fromkeys(("exp", "log", "sin", "cos", "softmax", "log_softmax", "logsumexp", "cross_entropy_loss"), 12),
    **dict.fromkeys(("sigmoid", "tanh", "erf", "gelu", "silu", "mish", "softplus", "log1p", "expm1", "elu"), 18),
    **dict.fromkeys(("pow", "atan", "asin", "acos"), 24),
}
"""Work of one element of an operator in additions, as `work.py` counts it in kernels; 1 where it is not named."""

NATIVE_CALL_SHARE = 0.3
"""Cost of a native call against that of a library operator."""
VIEW_CALL_SHARE = 0.5
"""The same of an operator that only makes a view."""


def layout_ms(layout: Layout, graph: Graph, device: Device) -> float:
    """Returns milliseconds for one call of all steps, one after the other."""
    facts = Facts(graph)
    total_ms = 0.0
    previous: Step | None = None
    for step in layout.steps:
        if isinstance(step, Kernel):
            total_ms += _kernel_ms(step, device)
            if not isinstance(previous, Kernel):
                total_ms += NATIVE_CALL_SHARE * device.launch_us * 1e-3
        else:
            total_ms += _library_ms(step.node, facts, device)
        previous = step
    return max(total_ms, 1e-6)


def _kernel_ms(kernel: Kernel, device: Device) -> float:
    moved = sum(a.numel * DTYPE_BYTES[a.dtype] for a in kernel.arrays if a.place != "scratch")
    peak = device.peak_tflops.get("float32", 0.05)
    return max(_moving_ms(moved, device), kernel_flops(kernel) / (peak * 1e9))


def _library_ms(node: Node, facts: Facts, device: Device) -> float:
    known = all(name in facts.specs for name in node_refs(node))
    moved = node_bytes(facts, node) if known else 2 * sum(v.spec.bytes for v in node.outputs if v.spec is not None)
    flops = WORK.get(base(node), 1) * node_flops(facts, node) if known else 0
    peak = device.peak_tflops.get("float32", 0.05)
    if base(node) in VIEWS:
        return VIEW_CALL_SHARE * device.launch_us * 1e-3
    return device.launch_us * 1e-3 + max(_moving_ms(moved, device), flops / (peak * 1e9))


def _moving_ms(moved: int, device: Device) -> float:
    fits = moved <= device.l3_bytes + device.cores * device.l2_bytes
    return moved / ((device.cache_gbps if fits else device.copy_gbps) * 1e6)
