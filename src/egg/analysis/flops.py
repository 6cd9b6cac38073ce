"""Floating operations of one node, by operator class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log2, prod

from egg.analysis.operators import EXP_FLOPS, POINTWISE_FLOPS, REDUCTION_FLOPS, OpClass, base_name, class_of
from egg.schema.graph import Arg, Node, Ref, TensorSpec, arg_refs, node_refs

Specs = Mapping[str, TensorSpec]

NORM_FLOPS = 8
"""An element of a norm with statistics: mean, squared difference, scale, shift."""

NORM_EVAL_FLOPS = 2
"""An element of a batch norm with fixed statistics: one scale, one shift."""

SOFTMAX_FLOPS = EXP_FLOPS + 4
"""An element of a softmax: maximum, difference, exponential, sum, scale."""

LOSS_FLOPS = 4
RESAMPLE_FLOPS = 8


def node_flops(node: Node, specs: Specs) -> int:
    """Returns the floating operations of a node; multiply and add count as two."""
    rule = _RULES.get(class_of(node.op))
    return rule(node, specs) if rule else 0


def _matmul(node: Node, specs: Specs) -> int:
    name = base_name(node.op)
    if name == "einsum":
        return _einsum(node, specs)
    out = _output_numel(node)
    operands = _operands(node, specs)
    if name in ("addmm", "baddbmm", "addmv", "addbmm"):
        return 2 * out * operands[1].shape[-1] * (operands[1].shape[0] if name == "addbmm" else 1) + out
    if name == "linear":
        return 2 * out * operands[1].shape[-1] + (out if len(operands) > 2 else 0)
    if name == "bilinear":
        return 2 * out * operands[2].shape[-1] * operands[2].shape[-2]
    if name in ("outer", "ger", "kron", "addr"):
        return out
    if name in ("cdist", "_cdist_forward"):
        return 3 * out * operands[0].shape[-1]
    return 2 * out * (operands[0].shape[-1] if operands[0].shape else 1)


def _einsum(node: Node, specs: Specs) -> int:
    """Returns the cost of contracting the operands from left to right, as torch does."""
    equation, operands = node.args[0], node.args[1]
    assert isinstance(equation, str)
    assert isinstance(operands, tuple)
    left, _, right = equation.replace(" ", "").partition("->")
    extents: dict[str, int] = {}
    terms = left.split(",")
    for term, operand in zip(terms, operands, strict=True):
        assert isinstance(operand, Ref)
        extents |= zip(_labels(term, specs[operand.ref]), specs[operand.ref].shape, strict=True)
    sets = [
        set(_labels(term, specs[operand.ref]))
        for term, operand in zip(terms, operands, strict=True)
        if isinstance(operand, Ref)
    ]
    kept = set(right) - {"."} | {label for label in extents if len(label) > 1}
    total, done = 0, sets[0]
    for i, labels in enumerate(sets[1:], start=1):
        joined = done | labels
        later = set[str]().union(*sets[i + 1 :])
        summed = joined - kept - later
        total += (2 if summed else 1) * prod(extents[label] for label in joined)
        done = joined - summed
    return total or prod(extents.values())


def _labels(term: str, spec: TensorSpec) -> list[str]:
    """Returns a label for each dimension; those of an ellipsis count from the right."""
    before, dots, after = term.partition("...")
    hidden = len(spec.shape) - len(before) - len(after) if dots else 0
    return [*before, *(f"...{hidden - i}" for i in range(hidden)), *after]


def _conv(node: Node, specs: Specs) -> int:
    operands = _operands(node, specs)
    source, weight = operands[:2]
    transposed = "transpose" in node.op or (base_name(node.op) == "convolution" and node.args[6] is True)
    taps = prod(weight.shape[1:])  # input channels of a group times kernel; output channels where transposed
    out = _output_numel(node)
    return 2 * (source.numel if transposed else out) * taps + (out if len(operands) > 2 else 0)


def _attention(node: Node, specs: Specs) -> int:
    query, key, value = _operands(node, specs)[:3]
    rows, columns = query.shape[-2], key.shape[-2]
    causal = node.kwargs.get("is_causal", node.args[5] if len(node.args) > 5 else False)
    pairs = sum(min(i + 1, columns) for i in range(rows)) if causal else rows * columns
    return prod(query.shape[:-2]) * pairs * (2 * (query.shape[-1] + value.shape[-1]) + SOFTMAX_FLOPS)


def _recurrent(node: Node, specs: Specs) -> int:
    """Returns two operations a weight for every row of every step; the gates are small beside that."""
    source = specs[node_refs(node)[0]]
    rows = prod(source.shape[:-1])
    weights = [specs[ref] for ref in arg_refs(node.args[2]) if len(specs[ref].shape) == 2]
    return sum(2 * weight.numel * rows for weight in weights)


def _pointwise(node: Node, specs: Specs) -> int:
    return _output_numel(node) * POINTWISE_FLOPS.get(base_name(node.op), 1)


def _reduction(node: Node, specs: Specs) -> int:
    return _first_numel(node, specs) * REDUCTION_FLOPS.get(base_name(node.op), 1)


def _norm(node: Node, specs: Specs) -> int:
    fixed = node.op == "aten.batch_norm.default" and node.args[5] is False
    fixed |= base_name(node.op) == "_native_batch_norm_legit_no_training"
    return _first_numel(node, specs) * (NORM_EVAL_FLOPS if fixed else NORM_FLOPS)


def _pool(node: Node, specs: Specs) -> int:
    if "adaptive" in node.op:
        return max(_first_numel(node, specs), _output_numel(node))
    rank = len(specs[node_refs(node)[0]].shape)
    return _output_numel(node) * _taps(node.args[1], node.op, rank)


def _taps(kernel: Arg, op: str, rank: int) -> int:
    """Returns the number of elements under a pooling window; one extent stands for all dimensions."""
    spatial = next((n for n in (1, 2, 3) if f"pool{n}d" in op), rank - 2)
    extents = [kernel] if isinstance(kernel, int) else list(kernel) if isinstance(kernel, tuple) else [1]
    sizes = [e for e in extents if isinstance(e, int)]
    return sizes[0] ** spatial if len(sizes) == 1 else prod(sizes)


def _sort(node: Node, specs: Specs) -> int:
    spec = specs[node_refs(node)[0]]
    return int(spec.numel * max(1.0, log2(max(2, spec.shape[-1] if spec.shape else 1))))


def _loss(node: Node, specs: Specs) -> int:
    each = SOFTMAX_FLOPS if base_name(node.op) == "cross_entropy_loss" else LOSS_FLOPS
    return _first_numel(node, specs) * each


def _output_numel(node: Node) -> int:
    return max((v.spec.numel for v in node.outputs if v.spec is not None), default=0)


def _first_numel(node: Node, specs: Specs) -> int:
    operands = _operands(node, specs)
    return operands[0].numel if operands else _output_numel(node)


def _operands(node: Node, specs: Specs) -> list[TensorSpec]:
    """Returns the tensors that a node uses, in order, with repeats."""
    return [specs[ref] for ref in node_refs(node) if ref in specs]


_RULES: dict[OpClass, Callable[[Node, Specs], int]] = {
    "matmul": _matmul,
    "conv": _conv,
    "attention": _attention,
    "recurrent": _recurrent,
    "pointwise": _pointwise,
    "reduction": _reduction,
    "norm": _norm,
    "softmax": lambda node, specs: _first_numel(node, specs) * SOFTMAX_FLOPS,
    "pool": _pool,
    "scan": lambda node, specs: _first_numel(node, specs),
    "random": lambda node, specs: _output_numel(node) * 2,
    "sort": _sort,
    "loss": _loss,
    "resample": lambda node, specs: _output_numel(node) * RESAMPLE_FLOPS,
    "other": lambda node, specs: _output_numel(node),
}
