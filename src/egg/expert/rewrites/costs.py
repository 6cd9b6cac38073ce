"""What an operator costs when it runs alone, as far as a rewrite needs to know."""

from __future__ import annotations

from math import prod

from egg.expert.rewrites.convolution import convolution
from egg.expert.rewrites.matching import Facts, base
from egg.schema.graph import Node, node_refs

VIEWS = frozenset({
    "view", "reshape", "_unsafe_view", "permute", "transpose", "t", "squeeze", "unsqueeze", "expand", "expand_as",
    "slice", "select", "narrow", "alias", "detach", "unbind", "split", "split_with_sizes", "chunk", "flatten",
    "unflatten",
})  # fmt: skip
"""Operators that move nothing."""

PRODUCTS = ("linear", "addmm", "mm", "matmul", "bmm", "baddbmm")


def node_bytes(facts: Facts, node: Node) -> int:
    """Returns the bytes that a node reads and writes; 0 for a view."""
    if base(node) in VIEWS:
        return 0
    read = sum(facts.specs[name].bytes for name in set(node_refs(node)) if name in facts.specs)
    return read + sum(v.spec.bytes for v in node.outputs if v.spec is not None)


def node_flops(facts: Facts, node: Node) -> int:
    """Returns the arithmetic operations of a node: exact for products and convolutions, else one for each element."""
    out = node.outputs[0].spec
    if out is None or base(node) in VIEWS:
        return 0
    if base(node) in PRODUCTS:
        left = facts.spec(node.args[1] if base(node) in ("addmm", "baddbmm") else node.args[0])
        return 2 * out.numel * left.shape[-1] if left is not None and left.shape else 0
    conv = convolution(facts, node)
    if conv is not None:
        return conv.flops
    return max([out.numel, *(facts.specs[n].numel for n in node_refs(node) if n in facts.specs)])


def product_rows(name: str, out: tuple[int, ...]) -> int:
    """Returns the rows of a product, of one matrix of a batch, with a result of shape `out`."""
    if name == "linear":
        return prod(out[:-1])
    return out[-2] if len(out) >= 2 else 1
