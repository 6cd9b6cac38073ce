"""Operators of the graph as plain torch calls in Python."""

from __future__ import annotations

from collections.abc import Callable
from math import isinf, isnan

from egg.schema.graph import Arg, Node, Ref, Symbol

SHORT = {
    "aten.linear.default": "torch.nn.functional.linear",
    "aten.matmul.default": "torch.matmul",
    "aten.mm.default": "torch.mm",
    "aten.bmm.default": "torch.bmm",
    "aten.addmm.default": "torch.addmm",
    "aten.conv1d.default": "torch.conv1d",
    "aten.conv2d.default": "torch.conv2d",
    "aten.conv3d.default": "torch.conv3d",
    "aten.conv1d.padding": "torch.conv1d",
    "aten.conv2d.padding": "torch.conv2d",
    "aten.conv3d.padding": "torch.conv3d",
    "aten.conv_transpose1d.default": "torch.conv_transpose1d",
    "aten.conv_transpose2d.input": "torch.conv_transpose2d",
    "aten.conv_transpose3d.input": "torch.conv_transpose3d",
    "aten.view.default": "torch.reshape",
    "aten._unsafe_view.default": "torch.reshape",
}
"""Calls with a name that people know, and views that must work on any strides."""

DENSE_RESULTS = frozenset(op for op in SHORT if "view" not in op)
"""Operators whose result is dense and row-major on the CPU whenever their arguments are."""


def call(node: Node, variable: Callable[[str], str]) -> str:
    """Returns the Python text of one operator; `variable` names the values."""
    args = [literal(a, variable) for a in node.args]
    args += [f"{name}={literal(a, variable)}" for name, a in node.kwargs.items()]
    return f"{SHORT.get(node.op, f'torch.ops.{node.op}')}({', '.join(args)})"


def literal(arg: Arg, variable: Callable[[str], str]) -> str:
    """Returns an argument as Python."""
    match arg:
        case Ref(ref=name):
            return variable(name)
        case Symbol(kind="device", text=text):
            return f'torch.device("{text}")'
        case Symbol(text=text):
            return f"torch.{text}"
        case tuple():
            return f"[{', '.join(literal(a, variable) for a in arg)}]"
        case float() if isinf(arg) or isnan(arg):
            return f'float("{arg}")'
        case _:
            return repr(arg)
