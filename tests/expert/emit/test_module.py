"""Candidates as files: they run, fall back on plain facts, and keep the reference's own constructor and state."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.expert.candidates import analyses_of, assert_equal_calls, author, imported, pair, plan_for, task_of, written
from torch import nn

from egg.tasks.find import task_from_module

NORM = '''
SIZE = 16
UNUSED = 3


class Gate(nn.Module):
    """A helper class."""

    def forward(self, x):
        return torch.sigmoid(x) * x


class Model(nn.Module):
    def __init__(self, size: int):
        super(Model, self).__init__()
        self.norm = nn.LayerNorm(size)
        self.gate = Gate()

    def forward(self, x, scale=None):
        y = self.gate(self.norm(x))
        return y if scale is None else y * scale


def get_inputs():
    return [torch.randn(4, SIZE)]


def get_init_inputs():
    return [SIZE]
'''


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_FFI_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "kernels"))


def test_the_file_has_what_the_class_needs_and_no_more(tmp_path: Path) -> None:
    source = written(task_of(tmp_path, NORM), "fuse.rows").source
    assert "class Gate(nn.Module)" in source
    assert "super(ModelNew, self)" in source
    assert "def forward_reference(self, x, scale=None):" in source
    for left_out in ("get_inputs", "get_init_inputs", "UNUSED", "SIZE", "class Model("):
        assert left_out not in source


def test_kernels_run_for_their_call_and_the_reference_for_others(tmp_path: Path) -> None:
    task = task_of(tmp_path, NORM)
    module = imported(written(task, "fuse.rows").source, tmp_path)
    assert_equal_calls(task, module)
    reference, model, (x,), _ = pair(task, module)
    calls: list[str] = []
    model.forward_reference = lambda *a, **k: calls.append("reference") or reference(*a, **k)
    with torch.no_grad():
        model(x)
        assert calls == []
        wide = torch.randn(16, 8).t()[:4, :]
        for args in ((x[:2],), (x.double()[:, :],), (x, 2.0), (wide,)):
            calls.clear()
            if args[0].dtype == torch.float64:
                reference.double()
            reference(*args)
            torch.testing.assert_close(model(*args), reference(*args))
            assert calls == ["reference"]
            reference.float()
    calls.clear()
    model(x).sum().backward()
    assert calls == ["reference"]
    assert model.eval()(x) is not None
    assert calls == ["reference", "reference"]


def test_a_changed_number_is_built_anew(tmp_path: Path) -> None:
    task = task_of(tmp_path, NORM)
    candidate = written(task, "fuse.rows")
    module = imported(candidate.source, tmp_path)
    knob = next(k for k in candidate.schedule if k.endswith(".lanes"))
    module.SCHEDULE[knob] = candidate.schedule_space[knob].choices[-1]
    assert_equal_calls(task, module)
    assert {k: list(s.choices) for k, s in candidate.schedule_space.items()} == module.SCHEDULE_SPACE


TRAINING = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, batch, *, gain):
        self.calls.add_(1)
        y = torch.relu(self.norm(self.conv(batch["image"]))) * gain
        return {"y": y, "sums": [y.sum((2, 3)), None]}


def get_inputs():
    return {"batch": {"image": torch.randn(2, 3, 8, 8), "unused": torch.randn(3)}, "gain": torch.randn(4, 1, 1)}
"""


def test_nested_inputs_state_and_structured_outputs(tmp_path: Path) -> None:
    task = task_of(tmp_path, TRAINING)
    candidate = written(task, "fuse.rows")
    assert candidate.not_covered == ("aten.conv2d.default: anchor",)
    module = imported(candidate.source, tmp_path)
    assert_equal_calls(task, module)
    _, model, args, kwargs = pair(task, module)
    model.forward_reference = None
    with torch.no_grad():
        model(*args, **kwargs)
        model(*args, **kwargs)
    assert model.calls.item() == 2
    assert model.norm.num_batches_tracked.item() == 2


WORKLOADS = """
class Model(nn.Module):
    def forward(self, x, exact: bool):
        table = torch.tensor([0.5, 1.5, 2.5, 3.5])
        return (F.gelu(x, approximate="none" if exact else "tanh") * table).cumsum(-1)


def get_inputs():
    return [torch.randn(3, 4), True]


def get_inputs_wide():
    return [torch.randn(5, 7, 4), False]
"""


def test_each_workload_has_its_own_kernels(tmp_path: Path) -> None:
    task = task_of(tmp_path, WORKLOADS)
    candidate = written(task, "fuse.rows")
    module = imported(candidate.source, tmp_path)
    assert {"_forward_default", "_forward_wide"} <= set(dir(module.ModelNew))
    for workload in range(2):
        assert_equal_calls(task, module, workload)
        _, model, args, kwargs = pair(task, module, workload)
        model.forward_reference = None
        with torch.no_grad():
            model(*args, **kwargs)


def test_algebra_alone_stays_in_torch(tmp_path: Path) -> None:
    text = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 32)

    def forward(self, x):
        return self.linear(x).mean(1)


def get_inputs():
    return [torch.randn(64, 8)]
"""
    task = task_of(tmp_path, text)
    candidate = written(task, "algebra.reduce-linear")
    assert candidate.language == "torch"
    module = imported(candidate.source, tmp_path)
    assert_equal_calls(task, module)
    _, model, args, _ = pair(task, module)
    with torch.no_grad():
        before = model(*args)
        model.linear.weight.mul_(2.0)
        model.linear.bias.mul_(2.0)
        torch.testing.assert_close(model(*args), before * 2)


class Tied(nn.Module):
    """A module that exists only as an object."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6)])
        self.blocks[1].weight = self.blocks[0].weight
        self.register_buffer("table", torch.arange(6.0), persistent=False)

    def forward(self, x: torch.Tensor, *, shift: float) -> tuple[torch.Tensor, torch.Tensor]:
        for block in self.blocks:
            x = torch.tanh(block(x)) + self.table
        return x, x.softmax(-1) + shift


@pytest.mark.parametrize("structure", [(), ("fuse.rows",)])
def test_a_live_module_gets_a_constructor_by_names(structure: tuple[str, ...], tmp_path: Path) -> None:
    given = torch.randn(3, 6)
    task = task_from_module(Tied().eval(), (given,), {"shift": 0.5})
    agent, analyses = author(), analyses_of(task)
    candidate = agent.reference(task, analyses)
    for option_id in structure:
        candidate = agent.write(task, analyses, candidate, plan_for(candidate, option_id))
    module = imported(candidate.source, tmp_path)
    assert_equal_calls(task, module)
    _, model, _, _ = pair(task, module)
    with torch.no_grad(), pytest.raises(ValueError, match="Tied: made for"):
        model(given[:1], shift=0.5)


CONV = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(x)) * 2


def get_inputs():
    return [torch.randn(2, 8, 6, 6)ORDER]
"""


@pytest.mark.parametrize("order", ["", ".to(memory_format=torch.channels_last)"])
def test_a_kernel_writes_over_the_result_of_a_convolution_in_any_order_of_memory(order: str, tmp_path: Path) -> None:
    task = task_of(tmp_path, CONV.replace("ORDER", order))
    source = written(task, "fuse.epilogue").source
    assert "run0(mul)" in source
    assert "torch.empty_strided" not in source
    assert_equal_calls(task, imported(source, tmp_path))
