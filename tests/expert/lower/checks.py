"""Holds the lowered program of a module against the module itself."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from tests.expert.interpret import interpret
from tests.expert.run_graph import graph_for, values_for
from torch import nn
from torch.utils import _pytree as pytree

from egg.expert.ir import Library, Program
from egg.expert.lower import lower
from egg.expert.simplify import simplify
from egg.schema.graph import tree_refs

EPSILON = {torch.float64: 2.0**-52, torch.float32: 2.0**-23, torch.bfloat16: 2.0**-7, torch.float16: 2.0**-10}


class Function(nn.Module):
    """A module that calls a function of tensors."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


def check(
    subject: nn.Module | Callable[..., Any], *args: Any, library: tuple[str, ...] = (), ulps: float = 16
) -> Program:
    """Returns the simplified program after comparing it, and the plain one, with the eager module.

    `library` names the operators that are expected to stay whole. Floating outputs may differ by `ulps` of the output's
    dtype at its largest magnitude.
    """
    module = subject if isinstance(subject, nn.Module) else Function(subject)
    eager = copy.deepcopy(module)
    graph = graph_for(module, *args)
    plain = lower(graph)
    assert tuple(s.node.op for s in plain.statements if isinstance(s, Library)) == library, [
        (s.node.op, s.reason) for s in plain.statements if isinstance(s, Library)
    ]
    values = values_for(graph, module, *args)
    with torch.no_grad():
        expected = [t for t in pytree.tree_leaves(eager(*args)) if isinstance(t, torch.Tensor)]
    state = dict(eager.named_parameters()) | dict(eager.named_buffers())
    paths = {i.name: str(i.path[0]) for i in graph.inputs if i.kind != "input"}
    simple = simplify(plain)
    for program in (plain, simple):
        known = interpret(program, values)
        for name, want in zip(tree_refs(program.returns), expected, strict=True):
            assert_close(known[name], want, ulps)
        for mutation in program.mutations:
            assert_close(known[mutation.value], state[paths[mutation.target]], ulps)
    return simple


def assert_close(got: torch.Tensor, want: torch.Tensor, ulps: float) -> None:
    """Checks shape, dtype and values; non-finite elements must agree exactly."""
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if not want.is_floating_point():
        assert torch.equal(got, want), (got, want)
        return
    finite = want[want.isfinite()].double()
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    bound = ulps * EPSILON[want.dtype]
    torch.testing.assert_close(got, want, rtol=bound, atol=bound * max(scale, 1e-30), equal_nan=True)
