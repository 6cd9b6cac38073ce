"""Modules and the layouts that they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tests.expert.run_graph import graph_for, run_graph, values_for
from tests.expert.run_layout import run_layout
from torch import nn

from egg.expert.groups import Grouping, group
from egg.expert.loops import Kernel, Layout
from egg.expert.lower import lower
from egg.schema.device import Device
from egg.schema.graph import tree_refs

DEVICE = Device(
    name="test", kind="cpu", cores=2, vector_bytes=32, isa="avx2", copy_gbps=10, cache_gbps=50,
    peak_tflops={"float32": 0.1}, launch_us=3, l1_bytes=2**15, l2_bytes=2**19, l3_bytes=2**24, source="sheet",
)  # fmt: skip


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self._function(*args)


def layout_of(module: nn.Module | Callable[..., Any], *args: torch.Tensor, choice: Grouping | None = None) -> Layout:
    """Returns the layout of a module after it was checked against the module's own graph."""
    module = module if isinstance(module, nn.Module) else Call(module)
    graph, values = graph_for(module, *args), values_for(graph_for(module, *args), module, *args)
    program = lower(graph)
    layout = group(program, choice or Grouping(), DEVICE)
    want, got = run_graph(graph, values), run_layout(layout, values)
    names = (*tree_refs(program.returns), *(m.value for m in program.mutations))
    for before, after in zip(graph.output_names(), names, strict=True):
        torch.testing.assert_close(got[after], want[before], rtol=1e-4, atol=1e-5, equal_nan=True)
    return layout


def kernels(layout: Layout) -> list[Kernel]:
    """Returns the kernels in order."""
    return [step for step in layout.steps if isinstance(step, Kernel)]


def only_kernel(layout: Layout) -> Kernel:
    """Returns the one step of a layout, which must be a kernel."""
    (step,) = layout.steps
    assert isinstance(step, Kernel)
    return step
