"""Tasks from KernelBench-style files."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path

import pytest
import torch

from egg.errors import TaskError, UsageError
from egg.schema.task import Task
from egg.tasks.find import find_task
from egg.tasks.load import draw_inputs, init_arguments, materialize, sketch

HEADER = "import torch\nimport torch.nn as nn\n"
SCALE = (
    HEADER
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))

    def forward(self, x, mask=None, scale=1.0):
        y = x * self.weight * scale
        return y if mask is None else y * mask

def get_inputs():
    return [torch.randn(4, 8)]
"""
)


def write(folder: Path, text: str, name: str = "task.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def load(task: Task, seed: int = 1, dtype: str | None = None):
    return materialize(task, task.workloads[0], seed, dtype)  # type: ignore[arg-type]


def test_missing_init_inputs_mean_none_and_defaults_of_forward_apply(tmp_path: Path) -> None:
    """BR-05."""
    task = find_task(write(tmp_path, SCALE))
    loaded = load(task)
    assert task.notes == ("get_init_inputs is missing: []",)
    assert [leaf.path for leaf in task.workloads[0].inputs] == [(0,)]
    assert torch.equal(loaded.module(*loaded.args), loaded.args[0] * loaded.module.weight)
    assert init_arguments(task, 0) == ((), {})

    longer = find_task(write(tmp_path, SCALE.replace("[torch.randn(4, 8)]", "[torch.randn(4, 8), None, 2.0]"), "b.py"))
    loaded = load(longer)
    assert loaded.args[1:] == (None, 2.0)
    assert torch.equal(loaded.module(*loaded.args), loaded.args[0] * loaded.module.weight * 2.0)


def test_only_floating_tensors_are_cast(tmp_path: Path) -> None:
    """BR-01."""
    text = (
        HEADER
        + """
class Model(nn.Module):
    def forward(self, predictions, targets, mask):
        return nn.functional.cross_entropy(predictions[mask], targets[mask])

def get_inputs():
    return [torch.randn(8, 10), torch.randint(0, 10, (8,)), torch.ones(8, dtype=torch.bool)]
"""
    )
    task = find_task(write(tmp_path, text))
    plain, oracle = load(task), load(task, dtype="float64")
    assert [a.dtype for a in oracle.args] == [torch.float64, torch.int64, torch.bool]
    assert torch.equal(oracle.args[0], plain.args[0].double())
    assert torch.equal(oracle.args[1], plain.args[1])


def test_parameters_buffers_and_plain_attributes_are_cast_after_the_draw(tmp_path: Path) -> None:
    text = (
        HEADER
        + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.shift = torch.randn(3)
    def forward(self, x):
        return self.norm(x) + self.shift
def get_inputs():
    return [torch.randn(5, 3)]
"""
    )
    task = find_task(write(tmp_path, text))
    plain, oracle = load(task).module, load(task, dtype="float64").module
    assert oracle.norm.running_var.dtype == torch.float64
    assert oracle.norm.num_batches_tracked.dtype == torch.int64
    assert torch.equal(oracle.shift, plain.shift.double())


def test_other_leaves_pass_unchanged_and_are_recorded(tmp_path: Path) -> None:
    """BR-02."""
    text = (
        HEADER
        + """
class Model(nn.Module):
    def forward(self, x, s, nothing, pair):
        return x * s + len(pair)
def get_inputs():
    return [torch.randn(16, 16), 3.14, None, [torch.zeros(4, dtype=torch.int32), "mode"]]
"""
    )
    task = find_task(write(tmp_path, text))
    leaves = {leaf.path: leaf.kind for leaf in task.workloads[0].inputs}
    assert leaves == {(0,): "tensor", (1,): "float", (2,): "NoneType", (3, 0): "tensor", (3, 1): "str"}
    args = load(task, dtype="float64").args
    assert args[1:3] == (3.14, None)
    assert isinstance(args[3], list)
    assert args[3][0].dtype == torch.int32
    assert args[3][1] == "mode"


def test_relative_paths_and_symlinks_are_the_same_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BR-04."""
    folder, sibling = tmp_path / "t", tmp_path / "work"
    folder.mkdir()
    sibling.mkdir()
    path = Path(write(folder, SCALE, "real name-1.py"))
    (folder / "link.py").symlink_to(path)
    monkeypatch.chdir(sibling)
    tasks = [find_task(spec) for spec in (str(path), "../t/link.py", os.path.relpath(path))]
    assert len({task.content_hash for task in tasks}) == 1
    assert {task.entry for task in tasks} == {str(path.resolve())}
    module = type(load(tasks[1]).module).__module__
    assert module.isidentifier()
    assert "class Model" in inspect.getsource(sys.modules[module].Model)


def test_a_missing_package_names_the_remedy(tmp_path: Path) -> None:
    """BR-52."""
    path = write(tmp_path, "import torch\nfrom no_such_package_x import rearrange\n")
    with pytest.raises(TaskError, match=rf"{path}:2: needs no_such_package_x: pip install no_such_package_x"):
        find_task(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def forward(self", "def forwards(self", r"task.py:4: Model has no forward"),
        ("class Model", "class Modell", r"class Model is missing; it defines Modell"),
        ("nn.Module)", "object)", r"task.py:4: Model is not a torch.nn.Module"),
        ("self.weight = ", "self.weight = ) ", r"task.py:7: syntax error"),
        ("torch.randn(8))", "torch.randn(-8))", r"task.py:7: Model\(...\) failed: RuntimeError"),
        ("[torch.randn(4, 8)]", "[torch.rnd(4, 8)]", r"task.py:14: get_inputs for workload 'default' failed: Attr"),
        ("[torch.randn(4, 8)]", "[torch.randn(4, 9)]", r"task.py:10: forward for workload 'default' failed: RuntimeE"),
        ("[torch.randn(4, 8)]", "[1, 2, 3, 4]", r"do not fit forward: too many positional arguments"),
        ("def get_inputs", "def inputs", r"get_inputs is missing"),
    ],
)
def test_what_cannot_run_says_file_line_and_cause(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SCALE
    with pytest.raises(TaskError, match=message):
        find_task(write(tmp_path, SCALE.replace(old, new)))


def test_a_failed_file_leaves_no_module_behind(tmp_path: Path) -> None:
    before = set(sys.modules)
    with pytest.raises(TaskError):
        find_task(write(tmp_path, "raise ValueError('no')\n"))
    assert not {name for name in set(sys.modules) - before if name.startswith("egg_task")}


@pytest.mark.parametrize("spec", ["nowhere.py", "not a task", "package.module:", "package:Class?input=x"])
def test_what_is_no_task_is_a_usage_error(spec: str) -> None:
    with pytest.raises(UsageError, match="'"):
        find_task(spec)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("[3, 5]", ((3, 5), {})),
        ("(3, 5)", ((3, 5), {})),
        ("{'a': 3, 'b': 5}", ((), {"a": 3, "b": 5})),
        ("[[3], {'b': 5}]", ((3,), {"b": 5})),
        ("[[], {'a': 3}]", ((), {"a": 3})),
        ("3", ((3,), {})),
    ],
)
def test_forms_of_init_inputs(tmp_path: Path, returned: str, expected: object) -> None:
    text = (
        HEADER
        + f"""
class Model(nn.Module):
    def __init__(self, a, b=5):
        super().__init__()
        self.a, self.b = a, b
    def forward(self, x):
        return x * self.a + self.b
def get_inputs():
    return [torch.randn(2)]
def get_init_inputs():
    return {returned}
"""
    )
    task = find_task(write(tmp_path, text))
    module = load(task).module
    assert (module.a, module.b) == (3, 5)
    assert init_arguments(task, 0) == expected


@pytest.mark.parametrize(
    ("returned", "paths"),
    [
        ("{'x': torch.randn(2), 'y': torch.randn(2)}", [("x",), ("y",)]),
        ("(torch.randn(2) for _ in range(2))", [(0,), (1,)]),
        ("torch.randn(2)", [(0,)]),
        ("[torch.randn(2), {'k': [torch.randn(2), 1]}]", [(0,), (1, "k", 0), (1, "k", 1)]),
        ("[[torch.randn(2)], {'y': None}]", [(0, 0), (1, "y")]),
    ],
)
def test_forms_of_inputs(tmp_path: Path, returned: str, paths: object) -> None:
    text = (
        HEADER
        + f"""
class Model(nn.Module):
    def forward(self, x, y=None):
        return x[0] if isinstance(x, list) else x + 1
def get_inputs():
    return {returned}
"""
    )
    assert [leaf.path for leaf in find_task(write(tmp_path, text)).workloads[0].inputs] == paths


def test_other_input_makers_are_further_workloads(tmp_path: Path) -> None:
    text = SCALE + "\ndef get_inputs_large():\n    return [torch.randn(64, 8)]\n"
    path = write(tmp_path, text)
    task = find_task(path)
    assert [(w.name, w.maker) for w in task.workloads] == [("default", None), ("large", "get_inputs_large")]
    assert draw_inputs(task, task.workloads[1], 0)[0][0].shape == (64, 8)
    only = find_task(path, workloads=["large"])
    assert [w.name for w in only.workloads] == ["large"]
    assert only.content_hash != task.content_hash
    with pytest.raises(UsageError, match=r"'huge'.*default, large"):
        find_task(path, workloads=["huge"])


def test_draws_depend_on_the_seed_alone_and_leave_the_generators_as_they_were(tmp_path: Path) -> None:
    task = find_task(write(tmp_path, SCALE))
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, again, other = load(task, 7), load(task, 7), load(task, 8)
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first.args[0], again.args[0])
    assert torch.equal(first.module.weight, again.module.weight)
    assert not torch.equal(first.args[0], other.args[0])
    assert torch.equal(draw_inputs(task, task.workloads[0], 7)[0][0], first.args[0])
    assert not torch.equal(first.args[0][0], first.module.weight)  # weights and inputs never share a stream


def test_huge_shapes_need_no_memory(tmp_path: Path) -> None:
    text = SCALE.replace("torch.randn(4, 8)", "torch.randn(2**40, 8)")
    task = find_task(write(tmp_path, text))
    assert task.workloads[0].inputs[0].spec is not None
    assert task.workloads[0].inputs[0].spec.shape == (2**40, 8)
    assert sketch(task, task.workloads[0]).real == ()


def test_a_constructor_that_reads_values_is_run_for_real(tmp_path: Path) -> None:
    text = SCALE.replace("super().__init__()", "super().__init__(); self.k = torch.linspace(0, 1, 3)[1].item()")
    task = find_task(write(tmp_path, text))
    made = sketch(task, task.workloads[0])
    assert made.real == ("module",)
    assert made.loaded.module.k == 0.5


def test_a_forward_that_reads_values_is_tried_for_real(tmp_path: Path) -> None:
    text = SCALE.replace("y = x *", "y = x if x.sum() > 0 else -x\n        y = y *")
    assert find_task(write(tmp_path, text)).notes == ("get_init_inputs is missing: []",)


def test_a_file_may_import_its_neighbour_and_name_its_class(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_task.py").write_text("FACTOR = 3.0\n")
    text = "from neighbour_of_task import FACTOR\n" + SCALE.replace("class Model", "class Net").replace("1.0", "FACTOR")
    before = list(sys.path)
    task = find_task(write(tmp_path, text) + ":Net")
    assert (task.class_name, task.name) == ("Net", "task:Net")
    assert sys.path == before
    assert load(task).module is not None
    del sys.modules["neighbour_of_task"]


def test_a_recorded_task_outlives_its_file(tmp_path: Path) -> None:
    path = write(tmp_path, SCALE)
    task = find_task(path)
    expected = load(task).args[0]
    Path(path).unlink()
    loaded = load(Task.model_validate_json(task.model_dump_json()))
    assert torch.equal(loaded.args[0], expected)
    assert "def forward" in inspect.getsource(type(loaded.module))


def test_mode_is_as_the_constructor_leaves_it_unless_asked(tmp_path: Path) -> None:
    path = write(tmp_path, SCALE.replace("super().__init__()", "super().__init__(); self.eval()"))
    assert not find_task(path).training
    task = find_task(path, training=True)
    assert task.training
    assert load(task).module.training
