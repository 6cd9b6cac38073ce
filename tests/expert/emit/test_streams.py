"""Stores past the caches and huge pages: what is written is the same at every length and wherever an output starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.expert.groups.cases import DEVICE, Call
from tests.expert.run_graph import graph_for

from egg.expert.design import schedules
from egg.expert.emit import load_cpp, print_cpp
from egg.expert.groups import Grouping, group
from egg.expert.loops import Schedule
from egg.expert.lower import lower
from egg.expert.outputs import FRESH_BYTES
from egg.schema.graph import tree_refs

LENGTHS = (1, 7, 31, 257, 1003, 4096)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return x.softmax(-1)


def running_total(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A scan, which writes element by element, with a plain value beside it."""
    total = x.cumsum(-1)
    return total, total * 2


def column_total(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Columns as lanes, in tiles."""
    return x.cumsum(0), x.sum(0)


def on_all(function: Callable[[torch.Tensor], Any]) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Returns the function of several tensors that gives all their results in one tuple."""

    def call(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = [function(x) for x in given]
        return tuple(t for r in results for t in (r if isinstance(r, tuple) else (r,)))

    return call


def started_at(shape: tuple[int, ...], start: int) -> torch.Tensor:
    """Returns a dense tensor that starts so many elements after an aligned address."""
    return torch.full((torch.Size(shape).numel() + start,), -1.0)[start:].reshape(shape)


@pytest.mark.parametrize("function", [torch.relu, softmax, running_total, column_total])
def test_every_length_and_start(function: Callable[[torch.Tensor], Any], tmp_path: Path) -> None:
    torch.manual_seed(3)
    given = [torch.randn(3, n) for n in LENGTHS]
    graph = graph_for(Call(on_all(function)), *given)
    program = lower(graph)
    layout = group(program, Grouping(), DEVICE)
    streaming = {k: Schedule({**s.values, "stream": True}) for k, s in schedules(layout, DEVICE).items()}
    unit = print_cpp(layout, streaming)
    assert "egg::put<" in unit.source
    module: Any = load_cpp("streams", unit.complete_source, tmp_path)
    (entry,) = unit.functions
    inputs = dict(zip((i.name for i in program.inputs), given, strict=True))
    for start in (0, 1, 5):
        outputs = {a.name: started_at(a.shape, start) for a in entry.arguments if a.name in entry.outputs}
        getattr(module, entry.name)(*({**inputs, **outputs}[a.name] for a in entry.arguments))
        for name, wanted in zip(tree_refs(program.returns), on_all(function)(*given), strict=True):
            torch.testing.assert_close(outputs[name], wanted, rtol=1e-5, atol=1e-5)


def test_huge_pages_are_asked_for_under_large_outputs_alone(tmp_path: Path) -> None:
    x = torch.randn(FRESH_BYTES // 4 + 1)
    program = lower(graph_for(Call(lambda x: (x * 2, (x * x).sum())), x))
    layout = group(program, Grouping(), DEVICE)
    unit = print_cpp(layout, schedules(layout, DEVICE))
    assert unit.source.count(f"huge_pages>({tree_refs(program.returns)[0]}, {4 * x.numel()});") == 1
    assert unit.source.count("huge_pages>(") == 1
    module: Any = load_cpp("huge", unit.complete_source, tmp_path)
    (entry,) = unit.functions
    outputs = {a.name: torch.empty(a.shape) for a in entry.arguments if a.name in entry.outputs}
    getattr(module, entry.name)(*({program.inputs[0].name: x, **outputs}[a.name] for a in entry.arguments))
    torch.testing.assert_close(outputs[tree_refs(program.returns)[0]], x * 2)
