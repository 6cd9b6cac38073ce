"""Small windows have accumulators in variables and are written out; other reductions keep the elements' loop inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.expert.groups.cases import DEVICE, Call
from tests.expert.run_graph import graph_for
from torch import Tensor
from torch.nn import functional as F

from egg.expert.design import schedules
from egg.expert.emit import load_cpp, print_cpp
from egg.expert.emit.unit import CppUnit
from egg.expert.groups import Grouping, group
from egg.expert.lower import lower
from egg.schema.graph import tree_refs

X = torch.randn(2, 3, 38, 22)
X[0, 1, 5, 5] = float("nan")


def printed(function: Callable[[Tensor], Any], x: Tensor) -> tuple[CppUnit, tuple[str, ...]]:
    """Returns the printed kernels, and the names of their results."""
    program = lower(graph_for(Call(function), x))
    layout = group(program, Grouping(), DEVICE)
    return print_cpp(layout, schedules(layout, DEVICE)), tree_refs(program.returns)


def pools(x: Tensor) -> tuple[Tensor, ...]:
    return (
        F.max_pool2d(torch.relu(x), 2),
        F.avg_pool2d(x, 3, 2),
        F.max_pool2d(x.bfloat16(), 2),
        F.max_pool2d(x, (1, 3), 1, (0, 1)),
        x.reshape(2, 3, 2, 19, 22).prod(2),
        (x.reshape(2, 3, 2, 19, 22) > 0).all(2),
    )


def test_windows_agree_with_torch(tmp_path: Path) -> None:
    unit, names = printed(pools, X)
    assert unit.source.count("egg::unrolled<") >= 6
    module: Any = load_cpp("windows", unit.complete_source, tmp_path)
    (entry,) = unit.functions
    wanted = dict(zip(names, pools(X), strict=True))
    outputs = {n: torch.empty_like(t) for n, t in wanted.items()}
    getattr(module, entry.name)(*(outputs.get(a.name, X) for a in entry.arguments))
    for name, want in wanted.items():
        torch.testing.assert_close(outputs[name], want, equal_nan=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.max_pool2d(x, 3, 1, 1),  # padding above is the same for a whole line
        lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
        lambda x: F.avg_pool2d(x, 7, 1),  # too many points
        lambda x: x.sum(-1),  # the elements' loop itself is reduced
        lambda x: x.cumsum(2),
    ],
)
def test_what_is_no_small_window_is_printed_as_before(function: Callable[[Tensor], Any]) -> None:
    assert "egg::unrolled<" not in printed(function, X)[0].source
