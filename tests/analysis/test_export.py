"""The exported graph computes what the module computes, and changes what it changes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.analysis.run_graph import run_task
from torch import nn

from egg.analysis.export import export_graph
from egg.errors import TaskError
from egg.schema.graph import Graph, Mapping, Mutation, node_refs
from egg.tasks.find import find_task, task_from_module
from egg.tasks.load import flatten_leaves

KERNELBENCH = Path(__file__).parents[2] / "third_party" / "KernelBench"


class Keywords(nn.Module):
    def forward(self, x, *, first, second):
        return {"sum": x + first, "rest": [second * 2, None, 3], "x": x}


class InPlace(nn.Module):
    def forward(self, x, y):
        x = x.clone()
        x[:, 0] = y.sum()
        x.mul_(2).relu_()
        return x[1:], x.t()


class ChangesInputs(nn.Module):
    def forward(self, x, y):
        x.add_(1)
        y[:, 0] += x[:, 1]
        return x * 2


class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.zeros(2, 3)
        self.steps = [torch.arange(3.0), torch.tensor(2)]

    def forward(self, x):
        self.last = self.last * 0.5 + x
        return self.last + self.steps[0] * self.steps[1] + torch.tensor([0.5, 1.5, float("inf")])


class WithoutGradient(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            gate = self.line(x).sigmoid()
        return gate * self.line(x)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


class Parts(nn.Module):
    def forward(self, x, index):
        top, where = torch.topk(x, 2)
        low, high = x.chunk(2, dim=1)
        return top, where, low + high, x[index], torch.einsum("ij,kj->ik", x, x), x.cumsum(1)


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            y = self.line(x)
        return y.float() + torch.ones(4, dtype=torch.float64)


def x23() -> torch.Tensor:
    return torch.randn(2, 3)


CASES = {
    "keywords": (Keywords(), (x23(),), {"second": torch.randn(5), "first": torch.randn(3)}),
    "in-place": (InPlace(), (x23(), x23()), {}),
    "changes inputs": (ChangesInputs(), (x23(), x23()), {}),
    "remembers": (Remembers(), (x23(),), {}),
    "no_grad": (WithoutGradient(), (x23(),), {}),
    "tied": (Tied(), (x23(),), {}),
    "parts": (Parts(), (torch.randn(4, 6), torch.tensor([2, 0])), {}),
    "mixed": (Mixed(), (torch.randn(2, 4),), {}),
    "batch norm, training": (nn.BatchNorm2d(3), (torch.randn(2, 3, 4, 4),), {}),
    "batch norm, fixed": (nn.BatchNorm2d(3).eval(), (torch.randn(2, 3, 4, 4),), {}),
    "instance norm": (nn.InstanceNorm2d(3, affine=True, track_running_stats=True), (torch.randn(2, 3, 4, 4),), {}),
    "dropout": (nn.Dropout(0.3), (torch.randn(64),), {}),
    "attention": (nn.MultiheadAttention(8, 2, batch_first=True), (torch.randn(2, 3, 8),) * 3, {}),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (torch.randn(2, 3, 8),), {}),
    "lstm": (nn.LSTM(3, 5, 2, batch_first=True, bidirectional=True), (torch.randn(2, 7, 3),), {}),
    "lstm, projected": (nn.LSTM(3, 5, proj_size=2), (torch.randn(7, 2, 3),), {}),
    "gru": (nn.GRU(3, 5), (torch.randn(7, 2, 3),), {}),
    "rnn": (nn.RNN(3, 5, nonlinearity="relu"), (torch.randn(7, 3),), {}),
    "embedding": (nn.EmbeddingBag(10, 3, mode="sum"), (torch.tensor([[1, 2], [9, 0]]),), {}),
}


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("case", CASES)
def test_graph_computes_what_the_module_computes(case: str) -> None:
    module, args, kwargs = CASES[case]
    task = task_from_module(module, args, kwargs)
    graph = export_graph(task, task.workloads[0])
    expected, found, state, loaded = run_task(task, graph)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    after = dict(loaded.module.named_buffers()) | dict(vars(loaded.module))
    leaves = dict(flatten_leaves(loaded.args, loaded.kwargs))
    for i in graph.inputs:
        if i.name in state:
            changed = leaves[i.path] if i.kind == "input" else after[str(i.path[0])]
            torch.testing.assert_close(state[i.name], changed)
    check_well_formed(graph)
    assert Graph.model_validate_json(graph.model_dump_json()) == graph


def check_well_formed(graph: Graph) -> None:
    """Holds that every use follows its one definition."""
    known = {i.name for i in graph.inputs}
    for node in graph.nodes:
        assert known.issuperset(node_refs(node))
        assert not node.op.split(".")[1].endswith("_")  # in place
        made = [v.name for v in node.outputs]
        assert known.isdisjoint(made)
        known.update(made)
    assert known.issuperset(graph.output_names())


def test_running_statistics_are_explicit() -> None:
    task = task_from_module(nn.BatchNorm1d(3), (torch.randn(4, 3),))
    graph = export_graph(task, task.workloads[0])
    assert {m.target for m in graph.mutations} == {"b_running_mean", "b_running_var", "b_num_batches_tracked"}
    assert "aten._native_batch_norm_legit_functional.default" in {n.op for n in graph.nodes}


def test_changed_inputs_are_mutations() -> None:
    task = task_from_module(ChangesInputs(), (x23(), x23()))
    graph = export_graph(task, task.workloads[0])
    assert Mutation(target="x", value="add") in graph.mutations
    assert [m.target for m in graph.mutations] == ["x", "y"]


@pytest.mark.parametrize(
    ("module", "shape", "op"),
    [
        (nn.Linear(4, 4), (2, 4), "aten.linear.default"),
        (nn.LayerNorm(4), (2, 4), "aten.layer_norm.default"),
        (nn.GroupNorm(2, 4), (2, 4, 3), "aten.group_norm.default"),
        (nn.Softmax(-1), (2, 4), "aten.softmax.int"),
        (nn.Conv2d(3, 4, 3), (1, 3, 8, 8), "aten.conv2d.default"),
        (nn.MaxPool2d(2), (1, 3, 8, 8), "aten.max_pool2d.default"),
        (nn.GELU(), (2, 4), "aten.gelu.default"),
    ],
)
def test_composite_operators_stay_whole(module: nn.Module, shape: tuple[int, ...], op: str) -> None:
    task = task_from_module(module, (torch.randn(shape),))
    assert [node.op for node in export_graph(task, task.workloads[0]).nodes] == [op]


def test_constants_carry_their_values_and_attributes_are_buffers() -> None:
    task = task_from_module(Remembers(), (x23(),))
    graph = export_graph(task, task.workloads[0])
    values = {i.value for i in graph.inputs if i.kind == "constant"}
    assert values == {(0.0, 1.0, 2.0), (2,), (0.5, 1.5, float("inf"))}
    assert [(i.kind, i.path) for i in graph.inputs if i.kind == "buffer"] == [("buffer", ("last",))]
    assert [m.target for m in graph.mutations] == ["b_last"]


def test_returned_structure_is_kept() -> None:
    module, args, kwargs = CASES["keywords"]
    graph = export_graph(task := task_from_module(module, args, kwargs), task.workloads[0])
    assert isinstance(graph.returns, Mapping)
    assert graph.returns.keys == ("sum", "rest", "x")
    assert graph.output_names() == ("add", "mul", "x")


def test_dead_work_is_dropped_and_unused_parameters_stay() -> None:
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Linear(3, 3)

        def forward(self, x):
            self.line(x)
            return x + 1

    task = task_from_module(Idle(), (x23(),))
    graph = export_graph(task, task.workloads[0])
    assert [node.op for node in graph.nodes] == ["aten.add.Tensor"]
    assert [i.name for i in graph.inputs] == ["p_line_weight", "p_line_bias", "x"]


def test_control_flow_on_values_is_a_task_error_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "branch.py"
    path.write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        if x.sum() > 0:\n            return x\n        return -x\n"
        "def get_inputs():\n    return [torch.randn(3)]\n"
    )
    task = find_task(str(path))
    with pytest.raises(TaskError, match=r"branch.py:4: exporting .* depends on tensor values"):
        export_graph(task, task.workloads[0])


def test_long_sequences_export_at_once() -> None:
    task = task_from_module(nn.LSTM(4, 8, 3), (torch.randn(2000, 2, 4),))
    graph = export_graph(task, task.workloads[0])
    assert [node.op for node in graph.nodes if "zeros" not in node.op] == ["aten.lstm.input"]
    x = torch.randn(3, 2, 4)  # the rule is gone again
    assert torch.isfinite(nn.LSTM(4, 8)(x)[0]).all()


@pytest.mark.skipif(not KERNELBENCH.is_dir(), reason="third_party/KernelBench is absent")
@pytest.mark.parametrize(
    ("path", "ops"),
    [
        ("level1/5_*", {"aten.mul.Tensor"}),
        ("level1/93_*", {"aten.cumsum.default", "aten.mul.Tensor"}),
        ("level1/95_*", {"aten.cross_entropy_loss.default"}),
        ("level2/31_*", {"aten.conv2d.default", "aten.min.other"}),
        ("level2/66_*", {"aten.linear.default", "aten.native_dropout.default", "aten.softmax.int"}),
        ("level3/33_*", {"aten.cat.default", "aten.linear.default"}),
        ("level3/36_*", {"aten.lstm.input"}),
        ("level3/43_*", {"aten.matmul.default", "aten.softmax.int"}),
        ("level3/48_*", {"aten.einsum.default", "aten.cumsum.default"}),
    ],
)
def test_kernelbench_exports_at_full_size(path: str, ops: set[str]) -> None:
    (file,) = KERNELBENCH.glob(path)
    task = find_task(str(file))
    graph = export_graph(task, task.workloads[0])
    assert ops <= {node.op for node in graph.nodes}
    check_well_formed(graph)
