"""Tasks from entry points and live modules."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest
import torch
from torch import nn

from egg.errors import TaskError, UsageError
from egg.schema.task import Task
from egg.tasks.find import find_task, task_from_module
from egg.tasks.load import materialize

PACKAGE = """
import torch
from torch import nn

class Gate(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.line = nn.Linear(width, width)
    def forward(self, x):
        return torch.sigmoid(self.line(x))

def small():
    return [torch.randn(2, 4)]

def wide_init():
    return {"width": 6}

def wide():
    return [torch.randn(2, 6)]
"""


@pytest.fixture
def package(tmp_path: Path) -> Generator[str]:
    folder = tmp_path / "pack_of_gates"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "gates.py").write_text(PACKAGE)
    (folder / "makers.py").write_text("import torch\ndef three():\n    return [torch.randn(3, 4)]\n")
    yield str(tmp_path)
    for name in [name for name in sys.modules if name.startswith("pack_of_gates")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("query", "shape"),
    [("inputs=small", (2, 4)), ("inputs=wide&init=wide_init", (2, 6)), ("inputs=pack_of_gates.makers:three", (3, 4))],
)
def test_an_entry_point_with_makers(package: str, query: str, shape: tuple[int, ...]) -> None:
    before = list(sys.path)
    task = find_task(f"pack_of_gates.gates:Gate?{query}", search_path=[package])
    assert sys.path == before
    assert (task.kind, task.class_name, task.name) == ("entry", "Gate", "pack_of_gates.gates:Gate")
    assert "class Gate" in task.source
    loaded = materialize(Task.model_validate_json(task.model_dump_json()), task.workloads[0], 0)
    assert loaded.module(*loaded.args).shape == shape


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("pack_of_gates.gates:Gate", TaskError, "get_inputs is missing"),
        ("pack_of_gates.gates:Gate?inputs=huge", UsageError, "'huge': pack_of_gates.gates has no function 'huge'"),
        ("pack_of_gates.none:Gate?inputs=small", TaskError, "no module named pack_of_gates.none"),
        ("pack_of_gates.gates:Gat?inputs=small", TaskError, "class Gat is missing; it defines Gate"),
    ],
)
def test_a_wrong_entry_point_says_why(package: str, spec: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        find_task(spec, search_path=[package])


def test_a_live_module_keeps_its_weights_and_gets_fresh_values_of_the_same_domain() -> None:
    module = nn.Linear(4, 3)
    x, mask = torch.randn(5, 4), torch.tensor([0.0, float("-inf")])
    task = task_from_module(nn.Sequential(module), (x,), workloads={"one": ((x[:1],), {})})
    assert [w.name for w in task.workloads] == ["default", "one"]
    same, fresh = materialize(task, task.workloads[0], 0), materialize(task, task.workloads[0], 9)
    assert torch.equal(same.module[0].weight, module.weight)
    assert torch.equal(same.args[0], x)
    assert not torch.equal(fresh.args[0], x)
    assert torch.equal(fresh.args[0].flatten().sort().values, x.flatten().sort().values)

    class Masked(nn.Module):
        def forward(self, x: torch.Tensor, *, mask: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
            return x[order] + mask

    order = torch.tensor([1, 0])
    task = task_from_module(Masked(), (torch.randn(2, 2),), {"mask": mask, "order": order})
    fresh = materialize(task, task.workloads[0], 9)
    assert torch.equal(fresh.kwargs["mask"], mask)
    assert torch.equal(fresh.kwargs["order"], order)
    assert [leaf.path for leaf in task.workloads[0].inputs] == [(0,), ("mask",), ("order",)]


def test_recording_leaves_the_live_module_as_it_was() -> None:
    module = nn.BatchNorm1d(3)
    task = task_from_module(module, (torch.randn(4, 3),))
    assert int(module.num_batches_tracked) == 0
    assert type(module.running_mean) is torch.Tensor
    assert task.training


def test_a_live_module_that_does_not_fit_says_why() -> None:
    with pytest.raises(TaskError, match=r"Linear: forward for workload 'default' failed: RuntimeError: .*shapes"):
        task_from_module(nn.Linear(4, 3), (torch.randn(5, 5),))
    with pytest.raises(TaskError, match="do not fit forward: missing a required argument"):
        task_from_module(nn.Linear(4, 3))
    broken = nn.Linear(4, 3)
    broken.lock = (i for i in range(3))  # a generator can't be pickled
    with pytest.raises(TaskError, match="Linear: the module can't be pickled"):
        task_from_module(broken, (torch.randn(5, 4),))
