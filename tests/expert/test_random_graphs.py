"""Random graphs: the lowered, simplified program errs no more against float64 than PyTorch itself does."""

from __future__ import annotations

import copy
from collections import Counter

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from tests.expert.interpret import interpret
from tests.expert.lower.checks import EPSILON
from tests.expert.random_graphs import RandomGraph, Steps, operators_of, random_graphs
from tests.expert.random_operators import Drawn
from tests.expert.run_graph import graph_for, is_true, values_for
from torch import Tensor

from egg.expert.lower import lower
from egg.expert.simplify import simplify
from egg.schema.graph import tree_refs

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def outputs_in_float64(drawn: RandomGraph) -> list[Tensor]:
    """Returns the module's results for the same arguments in float64."""
    module = copy.deepcopy(drawn.module).double()
    with torch.no_grad():
        return module(*(a.double() if a.is_floating_point() else a for a in drawn.args))


def check_against_float64(drawn: RandomGraph, got: list[Tensor], eager: list[Tensor], oracle: list[Tensor]) -> None:
    """Checks shapes, dtypes, and an error of at most four times PyTorch's own or a few ulps of the largest value."""
    for mine, theirs, exact in zip(got, eager, oracle, strict=True):
        assert mine.shape == theirs.shape
        assert mine.dtype == theirs.dtype
        error, own = (float((t.double() - exact.double()).abs().max()) for t in (mine, theirs))
        ulps = 32 * EPSILON.get(mine.dtype, 0.0) * max(float(exact.abs().max()), 1e-3)
        assert error <= 4 * own + ulps, f"{error} > 4 * {own} + {ulps}\n{drawn.text}"


def check_program(drawn: RandomGraph) -> None:
    """Checks the interpreted program of a graph against its module."""
    module = copy.deepcopy(drawn.module)
    graph = graph_for(module, *drawn.args)
    program = simplify(lower(graph))
    known = interpret(program, values_for(graph, module, *drawn.args))
    with torch.no_grad():
        eager = copy.deepcopy(drawn.module)(*drawn.args)
    got = [known[name] for name in tree_refs(program.returns)]
    check_against_float64(drawn, got, eager, outputs_in_float64(drawn))


def test_the_strategy_reaches_every_operator() -> None:
    seen: Counter[str] = Counter()
    sizes: Counter[int] = Counter()

    @settings(max_examples=400, deadline=None, suppress_health_check=SLOW, database=None, derandomize=True)
    @given(random_graphs())
    def collect(drawn: RandomGraph) -> None:
        names = list(operators_of(drawn))
        seen.update(names)
        sizes[len(names)] += 1

    collect()
    assert len(seen) > 80
    assert max(sizes) == 8


@settings(max_examples=15, deadline=None, suppress_health_check=SLOW, derandomize=True)
@given(random_graphs())
def test_programs_are_as_exact_as_pytorch(drawn: RandomGraph) -> None:
    check_program(drawn)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=SLOW, derandomize=True)
@given(random_graphs())
def test_many_programs_are_as_exact_as_pytorch(drawn: RandomGraph) -> None:
    check_program(drawn)


def test_a_graph_that_says_other_than_torch_computes_is_not_true() -> None:
    drawn = RandomGraph(Steps(), (torch.ones(1),), "")
    drawn.module.add("s0", Drawn(lambda x: torch.linalg.vector_norm(x, dim=-1), ("a0",)))
    graph = graph_for(drawn.module, *drawn.args)
    values = values_for(graph, drawn.module, *drawn.args)
    (node,) = graph.nodes
    assert node.outputs[0].spec is not None
    for said, true in (({"shape": ()}, True), ({"shape": (1,)}, False), ({"dtype": "float64"}, False)):
        value = node.outputs[0].updated(spec=node.outputs[0].spec.updated(**said))
        assert is_true(graph.updated(nodes=(node.updated(outputs=(value,)),)), values) is true
