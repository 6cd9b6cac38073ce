"""FLOPs, bytes, floors and bounds, by hand."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from egg.analysis.analyst import TorchAnalyst
from egg.analysis.costs import op_costs, total_costs
from egg.analysis.export import export_graph
from egg.analysis.operators import class_of
from egg.analysis.traffic import footprint_bytes, minimal_bytes
from egg.schema.device import Device
from egg.schema.graph import Graph, TensorSpec
from egg.tasks.find import task_from_module

DEVICE = Device(
    name="made up",
    kind="cpu",
    cores=2,
    vector_bytes=32,
    isa="avx2",
    copy_gbps=10.0,
    cache_gbps=100.0,
    peak_tflops={"float32": 0.1, "float64": 0.05, "bfloat16": 0.4},
    launch_us=2.0,
    l1_bytes=32 * 1024,
    l2_bytes=512 * 1024,
    l3_bytes=0,
    source="sheet",
)


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def graph_of(function, *args: torch.Tensor) -> Graph:
    module = function if isinstance(function, nn.Module) else Call(function)
    task = task_from_module(module, args)
    return export_graph(task, task.workloads[0])


def flops_of(function, *args: torch.Tensor) -> int:
    return sum(op.flops for op in op_costs(graph_of(function, *args), DEVICE))


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(shape)


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        (torch.matmul, (ones(3, 4), ones(4, 5)), 2 * 3 * 4 * 5),
        (torch.matmul, (ones(7, 3, 4), ones(4, 5)), 2 * 7 * 3 * 4 * 5),
        (torch.matmul, (ones(3, 4), ones(4)), 2 * 3 * 4),
        (torch.bmm, (ones(7, 3, 4), ones(7, 4, 5)), 2 * 7 * 3 * 4 * 5),
        (torch.addmm, (ones(5), ones(3, 4), ones(4, 5)), 2 * 3 * 4 * 5 + 15),
        (nn.Linear(4, 5), (ones(3, 4),), 2 * 3 * 4 * 5 + 15),
        (nn.Linear(4, 5, bias=False), (ones(2, 3, 4),), 2 * 6 * 4 * 5),
        (lambda a, b: torch.einsum("bij,bkj->bik", a, b), (ones(2, 3, 4), ones(2, 5, 4)), 2 * 2 * 3 * 4 * 5),
        (lambda a, b: torch.einsum("...j,kj->...k", a, b), (ones(2, 3, 4), ones(5, 4)), 2 * 6 * 4 * 5),
        (
            lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c),
            (ones(2, 3), ones(3, 4), ones(4, 5)),
            2 * 2 * 3 * 4 + 2 * 2 * 4 * 5,
        ),
        (nn.Conv2d(6, 8, 3, groups=2, padding=1), (ones(2, 6, 5, 5),), 2 * (2 * 8 * 25) * (3 * 9) + 2 * 8 * 25),
        (nn.Conv1d(6, 6, 3, groups=6, bias=False), (ones(2, 6, 5),), 2 * (2 * 6 * 3) * 3),
        (nn.ConvTranspose2d(6, 8, 3, groups=2, bias=False), (ones(2, 6, 5, 5),), 2 * (2 * 6 * 25) * (4 * 9)),
        (F.scaled_dot_product_attention, (ones(2, 3, 8, 4),) * 3, 6 * 64 * (2 * 8 + 12)),
        (
            lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
            (ones(2, 3, 8, 4),),
            6 * 36 * (2 * 8 + 12),
        ),
        (
            lambda x, h, w, u: torch.lstm(x, (h, h), [w, u], False, 1, 0.0, False, False, False)[0],
            (ones(7, 2, 3), ones(1, 2, 5), ones(20, 3), ones(20, 5)),
            2 * 14 * (60 + 100),
        ),
        (nn.MaxPool2d(2), (ones(1, 3, 8, 8),), 3 * 16 * 4),
        (nn.AvgPool3d((1, 2, 3)), (ones(1, 1, 6, 6, 6),), 6 * 3 * 2 * 6),
        (nn.AdaptiveAvgPool2d(1), (ones(1, 3, 8, 8),), 192),
        (torch.relu, (ones(3, 4),), 12),
        (torch.exp, (ones(3, 4),), 12 * 8),
        (lambda x: x.sum(1), (ones(3, 4),), 12),
        (lambda x: torch.max(x, x + 1), (ones(3, 4),), 24),
        (nn.Softmax(1), (ones(3, 4),), 12 * 12),
        (nn.BatchNorm1d(4).eval(), (ones(3, 4),), 12 * 2),
        (nn.LayerNorm(4), (ones(3, 4),), 12 * 8),
        (lambda x: x.cumsum(0), (ones(3, 4),), 12),
        (lambda x: x.t().reshape(2, 6)[:, 1:].clone(), (ones(3, 4),), 0),
    ],
)
def test_flops(function, args: tuple[torch.Tensor, ...], expected: int) -> None:
    assert flops_of(function, *args) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (TensorSpec(shape=(3, 4), dtype="float32"), 48),
        (TensorSpec(shape=(3, 4), dtype="bfloat16", stride=(0, 1)), 8),
        (TensorSpec(shape=(), dtype="float64"), 8),
        (TensorSpec(shape=(0, 4), dtype="float32"), 0),
    ],
)
def test_an_expanded_dimension_counts_once(spec: TensorSpec, expected: int) -> None:
    assert footprint_bytes(spec) == expected


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        (lambda x: x * x, (ones(10),), 80),  # one operand, read once
        (lambda x, y: x + y, (ones(10, 10), ones(10)), 840),
        (lambda x, y: (x + y).relu().sum(), (ones(10, 10), ones(10)), 400 + 40 + 4),  # nothing between counts
        (lambda x, y: x * 2, (ones(10), ones(1000)), 80),  # what is not used is not read
        (lambda x: x[:5] * 2, (ones(1000),), 40),  # nor what is sliced away
        (lambda table, i: F.embedding(i, table), (ones(1000, 4), torch.tensor([1, 2])), 32 + 32 + 16),
        (lambda x: x.view(5, 2), (ones(10),), 0),  # a view of an input is free
        (lambda x: (x, x + 1), (ones(10),), 80),
        (lambda x, y: x.copy_(y * 2), (ones(10), ones(10)), 80),  # what is overwritten is not read
        (lambda x: x.add_(1), (ones(10),), 80),  # changed in place: read and written
    ],
)
def test_minimal_bytes(function, args: tuple[torch.Tensor, ...], expected: int) -> None:
    assert minimal_bytes(graph_of(function, *args)) == expected


def test_views_cost_nothing_and_copies_their_bytes() -> None:
    costs = op_costs(graph_of(lambda x: x.t().contiguous(), ones(10, 20)), DEVICE)
    assert [(op.flops, op.bytes) for op in costs] == [(0, 0), (0, 1600)]


@pytest.mark.parametrize(
    ("function", "args", "bound", "floor_ms"),
    [
        (torch.relu, (ones(2**20),), "memory", 2 * 2**22 / 10e9 * 1e3),
        (torch.relu, (ones(2**16),), "memory", 2 * 2**18 / 100e9 * 1e3),  # in the caches
        (torch.relu, (ones(16),), "launch", 128 / 100e9 * 1e3),
        (torch.matmul, (ones(256, 256),) * 2, "compute", 2 * 256**3 / 0.1e12 * 1e3),
        (torch.matmul, (torch.ones(256, 256, dtype=torch.bfloat16),) * 2, "compute", 2 * 256**3 / 0.4e12 * 1e3),
        (torch.matmul, (torch.ones(256, 256, dtype=torch.float64),) * 2, "compute", 2 * 256**3 / 0.05e12 * 1e3),
    ],
)
def test_floor_and_bound(function, args: tuple[torch.Tensor, ...], bound: str, floor_ms: float) -> None:
    graph = graph_of(function, *args)
    (op,) = op_costs(graph, DEVICE)
    totals = total_costs(graph, (op,), DEVICE)
    assert (op.bound, totals.bound) == (bound, bound)
    assert op.floor_ms == totals.floor_ms == pytest.approx(floor_ms)
    assert totals.arithmetic_intensity == totals.flops / totals.min_bytes


def test_many_small_operators_are_bound_by_launches() -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(40):
            x = x.tanh()
        return x

    graph = graph_of(chain, ones(2**16))
    costs = op_costs(graph, DEVICE)
    assert total_costs(graph, costs, DEVICE.updated(launch_us=50.0)).bound == "launch"


def test_a_number_read_from_a_tensor_is_no_traffic() -> None:
    class Reads(nn.Module):
        def forward(self, x):
            return x * x.max().item()

    graph = graph_of(Reads(), ones(10))
    assert minimal_bytes(graph) == 80
    assert [op.bytes for op in op_costs(graph, DEVICE)][-1] == 80


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("aten.max.default", "reduction"),
        ("aten.max.dim", "reduction"),
        ("aten.max.other", "pointwise"),
        ("aten.add.Tensor", "pointwise"),
        ("aten._unsafe_view.default", "view"),
        ("aten.no_such_operator.default", "other"),
    ],
)
def test_classes(op: str, kind: str) -> None:
    assert class_of(op) == kind


def test_the_analyst_gives_one_analysis_a_workload() -> None:
    task = task_from_module(nn.Linear(4, 5), (ones(3, 4),), workloads={"large": ((ones(30, 4),), {})})
    small, large = TorchAnalyst().analyze(task, DEVICE)
    assert (small.workload, large.workload) == ("default", "large")
    assert small.task_hash == task.content_hash
    assert small.flops == 2 * 3 * 4 * 5 + 15
    assert small.min_bytes == 4 * (12 + 20 + 5 + 15)
    assert small.facts["matmul_ops"] == 1
    assert large.flops == 10 * small.flops
    assert small.export_s > 0
