"""What simplify removes, and what it must leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.expert.lower.checks import Functions
from tests.expert.run_graph import graph_for

from egg.expert.folding import folded
from egg.expert.index import Axis, axis_index, constant
from egg.expert.ir import Apply, Bound, Cast, Constant, Define, Expr, Guard, Library, Load, Position, Program
from egg.expert.lower import lower
from egg.expert.simplify import simplify

I = Axis("i", 4)
X = Load("x", (axis_index(I),), "float32")


def f32(value: float) -> Constant:
    return Constant(value, "float32")


def apply(op: str, *args: Expr, dtype: str = "float32") -> Apply:
    return Apply(op, args, dtype)


def simplified(function: Callable[..., Any], *args: torch.Tensor) -> Program:
    return simplify(lower(graph_for(Functions({"function": function}), *args)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (apply("mul", X, f32(1.0)), X),
        (apply("mul", f32(1.0), X), X),
        (apply("sub", X, f32(0.0)), X),
        (apply("div", X, f32(1.0)), X),
        (apply("div", X, f32(4.0)), apply("mul", X, f32(0.25))),
        (apply("div", X, f32(3.0)), apply("div", X, f32(3.0))),
        (apply("neg", apply("neg", X)), X),
        (apply("add", f32(2.0), apply("mul", f32(3.0), f32(0.5))), f32(3.5)),
        (apply("add", X, f32(0.0)), apply("add", X, f32(0.0))),  # -0.0 + 0.0 is 0.0
        (apply("log", f32(-1.0)), apply("log", f32(-1.0))),
        (apply("where", Constant(True, "bool"), X, f32(0.0)), X),
        (apply("where", apply("lt", f32(1.0), f32(0.0), dtype="bool"), f32(0.0), X), X),
        (Cast(X, "float32"), X),
        (Cast(Constant(3, "int64"), "float32"), f32(3.0)),
        (Cast(Cast(Load("h", (), "bfloat16"), "float32"), "bfloat16"), Load("h", (), "bfloat16")),
        (Cast(Cast(X, "bfloat16"), "float32"), Cast(Cast(X, "bfloat16"), "float32")),  # rounding stays
        (Guard((Bound(axis_index(I), 0, 4),), X, f32(0.0), "float32"), X),
        (Guard((Bound(axis_index(I), 4, 9),), X, f32(0.0), "float32"), f32(0.0)),
        (Position(constant(7)), Constant(7, "int64")),
    ],
)
def test_folding(before: Expr, after: Expr) -> None:
    assert folded(before) == after


def test_equal_definitions_merge_and_dead_ones_go() -> None:
    program = simplified(lambda x: [x.var(1) + 1, torch.var_mean(x, 1)[0] * 2, x.std(1)], torch.ones(3, 4))
    reduced = [s.name for s in program.statements if isinstance(s, Define) and s.how is not None]
    assert len(reduced) == 2  # one sum, one sum of squares


def test_returned_views_are_copies() -> None:
    program = simplified(lambda x: [x.t(), x.t() * 2], torch.ones(3, 4))
    assert [s.shape for s in program.statements if isinstance(s, Define)] == [(4, 3), (4, 3)]


def test_library_operators_keep_what_they_read() -> None:
    program = simplified(lambda x: (x.t() * 1) @ x, torch.ones(3, 4))
    *defined, library = program.statements
    assert isinstance(library, Library)
    assert [s.name for s in defined] == [ref for ref in ("mul",) if ref in program.specs]


def test_inner_reductions_of_halves_are_not_rounded() -> None:
    program = simplified(lambda x: x.sum(1) * 2, torch.ones(3, 4, dtype=torch.bfloat16))
    inner, outer = program.statements
    assert isinstance(inner, Define)
    assert isinstance(outer, Define)
    assert (inner.dtype, outer.dtype) == ("float32", "bfloat16")


def test_specs_are_those_of_the_statements() -> None:
    program = simplified(lambda x: x.softmax(1).reshape(2, 6).sum(0), torch.ones(3, 4))
    names = {i.name for i in program.inputs} | {s.name for s in program.statements}
    assert set(program.specs) == names
