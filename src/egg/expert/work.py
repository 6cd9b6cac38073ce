"""How much arithmetic a scalar expression is, for grouping and for the cost model."""

from __future__ import annotations

from math import prod

from egg.expert.ir import Apply, Cast, Expr, Guard, Reduce, walk
from egg.expert.loops import Compute, Kernel, Stage

_ONLINE_FLOPS = 3
"""Work of one step of a `sumexp` beside its exponential: the maximum, the difference, the sum."""

_WEIGHTS = {
    **dict.fromkeys(("div", "reciprocal", "sqrt", "rsqrt", "fmod", "remainder", "floor_divide", "trunc_divide"), 5),
    **dict.fromkeys(("exp", "sigmoid", "silu", "elu", "selu", "normal_cdf"), 20),
    **dict.fromkeys(("log", "expm1", "tanh", "softmax", "log_softmax", "logsumexp", "cross_entropy_loss", "erf"), 32),
    **dict.fromkeys(("log1p", "gelu", "mish", "softplus"), 45),
    **dict.fromkeys(("layer_norm", "group_norm"), 24),
    **dict.fromkeys(("exp2", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "erfc"), 75),
    **dict.fromkeys(("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh", "pow"), 100),
}
"""Cost of an operator against one addition, vectorised, as measured with AVX2. What is not named costs 1."""

HALF_DTYPES = frozenset(("float16", "bfloat16"))


def op_flops(op: str) -> int:
    """Returns the work of one scalar operator, in additions."""
    return _WEIGHTS.get(op, 1)


def flops(expr: Expr) -> int:
    """Returns the work of one evaluation, in additions."""
    total = 0
    for part in walk(expr):
        match part:
            case Apply(op=op):
                total += op_flops(op)
            case Cast(arg=arg, dtype=dtype):
                total += int(dtype in HALF_DTYPES or arg.dtype in HALF_DTYPES)
            case Guard(bounds=bounds):
                total += len(bounds)
            case _:
                pass
    return total


def kernel_flops(kernel: Kernel) -> int:
    """Returns the work of all rows of a kernel, in additions; a reduction or scan step counts as one."""
    rows = prod(a.extent for a in kernel.rows)
    return sum(rows * stage_flops(stage) for stage in kernel.stages)


def stage_flops(stage: Stage) -> int:
    """Returns the work of a stage for one row."""
    points = prod(a.extent for a in stage.order)
    return points * sum(flops(c.body) + _step_flops(c) for c in stage.computes)


def _step_flops(compute: Compute) -> int:
    """Returns the work of taking one value into a reduction or scan; a product that is added up is one instruction."""
    match compute.how, compute.body:
        case None, _:
            return 0
        case Reduce(kind="sum"), Apply(op="mul"):
            return 0
        case Reduce(kind="sumexp"), _:
            return op_flops("exp") + _ONLINE_FLOPS
        case _:
            return 1
