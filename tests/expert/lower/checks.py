"""Holds the lowered program of a module, or of many functions at once, against PyTorch itself."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
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


class Functions(nn.Module):
    """A module that calls functions of the same tensors and returns all results, so that one export serves many."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *args: torch.Tensor) -> Any:
        return tuple(f(*args) for f in self.functions.values())


EMPTY = "a tensor without elements"
"""Why an operator on nothing stays with torch."""


def check(
    subject: nn.Module | Callable[..., Any] | Mapping[str, Callable[..., Any]],
    *args: Any,
    library: tuple[str, ...] = (),
    ulps: float = 16,
) -> Program:
    """Returns the simplified program after comparing it, and the plain one, with the eager module.

    `library` names the operators that are expected to stay whole, besides those without elements. Floating outputs may
    differ by `ulps` of the output's dtype at its largest magnitude.
    """
    functions = subject if isinstance(subject, Mapping) else {"function": subject}
    module = subject if isinstance(subject, nn.Module) else Functions(functions)
    eager = copy.deepcopy(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's advice about its own functions
        graph = graph_for(module, *args)
        with torch.no_grad():
            returned = eager(*args)
    named = returned if isinstance(subject, nn.Module) else dict(zip(functions, returned, strict=True))
    expected = [(pytree.keystr(p), t) for p, t in pytree.tree_leaves_with_path(named) if isinstance(t, torch.Tensor)]
    plain = lower(graph)
    whole = [(s.node.op, s.reason) for s in plain.statements if isinstance(s, Library) and s.reason != EMPTY]
    assert tuple(op for op, _ in whole) == library, whole
    values = values_for(graph, module, *args)
    state = dict(eager.named_parameters()) | dict(eager.named_buffers())
    paths = {i.name: str(i.path[0]) for i in graph.inputs if i.kind != "input"}
    simple = simplify(plain)
    for program in (plain, simple):
        known = interpret(program, values)
        for ref, (name, want) in zip(tree_refs(program.returns), expected, strict=True):
            assert_close(name, known[ref], want, ulps)
        for mutation in program.mutations:
            assert_close(mutation.target, known[mutation.value], state[paths[mutation.target]], ulps)
    return simple


def assert_close(name: str, got: torch.Tensor, want: torch.Tensor, ulps: float) -> None:
    """Checks shape, dtype and values; non-finite elements must agree exactly."""
    assert got.shape == want.shape, name
    assert got.dtype == want.dtype, name
    if not want.is_floating_point():
        assert torch.equal(got, want), (name, got, want)
        return
    finite = want[want.isfinite()].double()
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    bound = ulps * EPSILON[want.dtype]
    torch.testing.assert_close(
        got, want, rtol=bound, atol=bound * max(scale, 1e-30), equal_nan=True, msg=lambda text: f"{name}: {text}"
    )
