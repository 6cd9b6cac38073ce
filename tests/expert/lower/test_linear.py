"""Anchors stay whole, and their form as reductions says the same as PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.expert.interpret import interpret
from tests.expert.lower.checks import Functions, assert_close
from tests.expert.run_graph import graph_for, values_for
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from egg.expert.ir import Library, Statement
from egg.expert.lower import as_reduction, lower
from egg.expert.simplify import simplify
from egg.schema.graph import tree_refs


def sample(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def check_loops(functions: dict[str, Callable[..., Any]], *args: Any, ulps: float = 32) -> None:
    """Compares the program with every anchor written as reductions to PyTorch."""
    module = Functions(functions)
    graph = graph_for(module, *args)
    program = lower(graph)
    statements: list[Statement] = []
    for statement in program.statements:
        assert not isinstance(statement, Library) or statement.reason == "anchor"
        loops = as_reduction(statement.node, program.specs) if isinstance(statement, Library) else (statement,)
        assert loops is not None
        statements += loops
    with torch.no_grad():
        expected = pytree.tree_leaves(module(*args))
    known = interpret(simplify(replace(program, statements=tuple(statements))), values_for(graph, module, *args))
    names = list(functions)
    for name, ref, want in zip(names, tree_refs(program.returns), expected, strict=True):
        assert_close(name, known[ref], want, ulps)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_products(dtype: str) -> None:
    functions: dict[str, Callable[..., Any]] = {
        "matmul": lambda x, w, v: x @ w,
        "batched": lambda x, w, v: x[:, None] @ x.transpose(1, 2)[None],
        "mm": lambda x, w, v: torch.mm(x[0], w),
        "bmm": lambda x, w, v: torch.bmm(x, x.transpose(1, 2)),
        "vectors": lambda x, w, v: v @ v,
        "matrix vector": lambda x, w, v: x @ v,
        "vector matrix": lambda x, w, v: v @ w,
        "linear": lambda x, w, v: F.linear(x, w.t()),
        "linear bias": lambda x, w, v: F.linear(x, w.t(), w[0]),
        "addmm": lambda x, w, v: torch.addmm(w[0], x[0], w, beta=0.5, alpha=2),
        "baddbmm": lambda x, w, v: torch.baddbmm(x[:, :, :3], x, w[None].expand(2, 5, 3)),
        "addmv": lambda x, w, v: torch.addmv(v[:4], x[0], v),
        "outer": lambda x, w, v: torch.outer(v, w[0]),
    }
    kind = getattr(torch, dtype)
    check_loops(functions, sample(2, 4, 5).to(kind), sample(5, 3, seed=1).to(kind), sample(5, seed=2).to(kind), ulps=32)


def test_convolutions() -> None:
    functions: dict[str, Callable[..., Any]] = {
        "plain": lambda x, w, c: F.conv2d(x, w),
        "all": lambda x, w, c: F.conv2d(x, w, w[:, 0, 0, 0], (2, 1), (1, 2), (1, 2)),
        "groups": lambda x, w, c: F.conv2d(x, w[:, :2], groups=2, padding=1),
        "depthwise": lambda x, w, c: F.conv2d(x, w[:4, :1], groups=4, stride=2),
        "same": lambda x, w, c: F.conv2d(x, w, padding="same"),
        "one sample": lambda x, w, c: F.conv2d(x[0], w),
        "line": lambda x, w, c: F.conv1d(x[0], c, c[:, 0, 0], stride=2, padding=2),
        "volume": lambda x, w, c: F.conv3d(x[None], w[:, :2, None], padding=(0, 1, 1)),
    }
    check_loops(functions, sample(2, 4, 7, 6), sample(6, 4, 3, 3, seed=1), sample(5, 7, 3, seed=2))


def test_transposed_convolutions() -> None:
    functions: dict[str, Callable[..., Any]] = {
        "plain": lambda x, w, c: F.conv_transpose2d(x, w),
        "all": lambda x, w, c: F.conv_transpose2d(x, w, w[0, :, 0, 0], (2, 3), (1, 0), (1, 2), 1, (2, 1)),
        "groups": lambda x, w, c: F.conv_transpose2d(x, w, stride=2, padding=1, groups=2),
        "line": lambda x, w, c: F.conv_transpose1d(x[..., 0], c, stride=2, dilation=2),
        "volume": lambda x, w, c: (
            F.conv_transpose3d(x[:1, None].transpose(1, 2)[0], w[:, :, None], stride=2, padding=1)
            if False
            else F.conv_transpose3d(x.reshape(1, 4, 2, 5, 4), w[:, :, None], stride=2)
        ),
    }
    check_loops(functions, sample(2, 4, 5, 4), sample(4, 6, 3, 3, seed=1), sample(4, 3, 3, seed=2))


def test_attention() -> None:
    def attend(**options: Any) -> Callable[..., Any]:
        return lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, **options)

    functions: dict[str, Callable[..., Any]] = {
        "plain": attend(),
        "causal": attend(is_causal=True),
        "scale": attend(scale=0.3),
        "mask": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m > 0),
        "bias": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        "shared heads": lambda q, k, v, m: F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
    }
    mask = sample(5, 6, seed=3)
    mask[2] = -1.0  # a row that attends to nothing
    check_loops(functions, sample(2, 4, 5, 8), sample(2, 4, 6, 8, seed=1), sample(2, 4, 6, 7, seed=2), mask)


def test_without_a_form() -> None:
    graph = graph_for(Functions({"einsum": lambda x: torch.einsum("ij,kj->ik", x, x)}), sample(3, 4))
    (node,) = graph.nodes
    assert as_reduction(node, graph.specs()) is None
