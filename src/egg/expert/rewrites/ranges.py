"""Ranges that values of some operators are known to lie in, NaN aside."""

from __future__ import annotations

from math import inf

from egg.expert.rewrites.matching import Facts, argument, base, number
from egg.schema.graph import Ref

RANGES = {
    "relu": (0.0, inf), "relu6": (0.0, 6.0), "abs": (0.0, inf), "exp": (0.0, inf), "sqrt": (0.0, inf),
    "sigmoid": (0.0, 1.0), "softmax": (0.0, 1.0), "_softmax": (0.0, 1.0), "hardsigmoid": (0.0, 1.0),
    "tanh": (-1.0, 1.0), "sin": (-1.0, 1.0), "cos": (-1.0, 1.0), "erf": (-1.0, 1.0),
    "square": (0.0, inf), "rsqrt": (0.0, inf), "log_softmax": (-inf, 0.0), "_log_softmax": (-inf, 0.0),
}  # fmt: skip
"""By operator; PyTorch's own results stay inside, rounding included. (`softplus` and `logsigmoid` are left out.)"""

KEEPS_VALUES = frozenset({
    "view", "reshape", "_unsafe_view", "permute", "transpose", "t", "squeeze", "unsqueeze", "expand", "flatten",
    "slice", "select", "clone", "contiguous", "max_pool1d", "max_pool2d", "max_pool3d", "amax", "amin",
})  # fmt: skip
"""Operators whose results are among the values of their first argument."""


def value_range(facts: Facts, name: str) -> tuple[float, float]:
    """Returns bounds of all elements of a value: minus and plus infinity where nothing is known."""
    node = facts.producers.get(name)
    if node is None or node.name != name:
        return -inf, inf
    operator = base(node)
    if operator in RANGES:
        return RANGES[operator]
    if operator in KEEPS_VALUES and node.args and isinstance(node.args[0], Ref):
        return value_range(facts, node.args[0].ref)
    if operator in ("clamp", "hardtanh"):
        lowest = number(
            argument(node, 1, "min" if operator == "clamp" else "min_val", None if operator == "clamp" else -1.0)
        )
        highest = number(
            argument(node, 2, "max" if operator == "clamp" else "max_val", None if operator == "clamp" else 1.0)
        )
        return -inf if lowest is None else float(lowest), inf if highest is None else float(highest)
    if operator == "clamp_min" and number(argument(node, 1, "min")) is not None:
        return float(number(argument(node, 1, "min")) or 0.0), inf
    if operator == "clamp_max" and number(argument(node, 1, "max")) is not None:
        return -inf, float(number(argument(node, 1, "max")) or 0.0)
    return -inf, inf
