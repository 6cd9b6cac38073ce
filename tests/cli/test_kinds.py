"""Each kind of module and argument goes the whole way: graph, native candidate, real workers. Kernels do run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.expert.candidates import DEVICE, analyses_of, author, plan_for
from torch import Tensor, nn
from torch.nn import functional as F

from egg import runs
from egg.evaluation.evaluator import LocalEvaluator
from egg.request import Request
from egg.schema.evaluation import Evaluation, Status
from egg.schema.task import Task
from egg.tasks.find import find_task, task_from_module

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


class Calls(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class Nested(nn.Module):
    """Takes and gives nested structures, numbers, None and text."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(20, 16).t()[:, ::2])
        self.register_buffer("shift", torch.randn(10), persistent=False)

    def forward(self, batch: dict[str, Any], *, scale: float, mask: Tensor | None, mode: str) -> dict[str, Any]:
        y = torch.tanh(batch["x"] * self.weight + batch["more"][0]) * scale + self.shift
        if mask is not None and mode == "masked":
            y = y.masked_fill(mask, 0.0)
        return {"y": y, "pair": (y.sum(-1), [y.amax(-1)])}


def seen_of(task: Task, folder: Path) -> tuple[Evaluation, str]:
    """Returns what workers saw of the candidate that fuses most, and its language."""
    agent, analyses = author(), analyses_of(task)
    reference = agent.reference(task, analyses)
    level = next(o.id for o in agent.options(task, analyses, reference) if o.id.startswith("fuse."))
    candidate = agent.write(task, analyses, reference, plan_for(reference, level))
    config = runs.run_started(task, DEVICE, Request(budget_s=None, budget_attempts=1)).config
    evaluator = LocalEvaluator(task, config, folder, analyses)
    try:
        return evaluator.evaluate(candidate, "search", 60.0), candidate.language
    finally:
        evaluator.close()


def assert_native(task: Task, folder: Path) -> None:
    """Checks that the kernels passed, and that they ran: what falls back to the reference calls PyTorch."""
    seen, language = seen_of(task, folder)
    assert seen.status is Status.PASSED, seen.failure
    assert language == "cpp"
    assert seen.profile["aten_calls"] == 0


def test_nested_arguments_of_every_kind(tmp_path: Path) -> None:
    batch = {"x": torch.randn(16, 10), "more": [torch.randn(10), "text"]}
    given = {"scale": 0.5, "mask": torch.randn(16, 10) > 0, "mode": "masked"}
    assert_native(task_from_module(Nested(), (batch,), given), tmp_path)


def test_arguments_with_gaps_and_overlaps(tmp_path: Path) -> None:
    args = (torch.randn(8, 40)[:, ::2], torch.randn(1, 20).expand(8, 20), torch.randn(20, 8).t())
    assert_native(task_from_module(Calls(lambda x, y, z: F.gelu(x) * y + z), args), tmp_path)


def test_numbers_without_dimensions(tmp_path: Path) -> None:
    module = Calls(lambda x, y: (x * y.sum(), y * x.exp()))
    assert_native(task_from_module(module, (torch.randn(()), torch.randn(5))), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_dtypes(dtype: torch.dtype, tmp_path: Path) -> None:
    module = nn.Sequential(nn.LayerNorm(64), nn.GELU(), nn.Softmax(-1)).to(dtype)
    assert_native(task_from_module(module, (torch.randn(16, 64).to(dtype),)), tmp_path)


def test_tensors_without_elements_stay_with_torch(tmp_path: Path) -> None:
    module = Calls(lambda x, y: (x.sum(0) + y, x.sigmoid()))
    seen, _ = seen_of(task_from_module(module, (torch.randn(0, 8), torch.randn(8))), tmp_path)
    assert seen.status is Status.PASSED, seen.failure


@pytest.mark.slow
def test_each_workload_has_kernels_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "task.py"
    path.write_text(
        "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
        "    def forward(self, x, half=False):\n        return torch.tanh(x).sum(-1) * (0.5 if half else 1.0)\n\n\n"
        "def get_inputs():\n    return [torch.randn(8, 33)]\n\n\n"
        "def get_inputs_tall():\n    return {'x': torch.randn(64, 7), 'half': True}\n"
    )
    assert_native(find_task(str(path)), tmp_path)
