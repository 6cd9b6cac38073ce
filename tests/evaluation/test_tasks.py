"""Every kind of task goes the same way: files with constructor arguments, live modules, several workloads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from egg.evaluation.evaluator import LocalEvaluator
from egg.schema.evaluation import Status
from egg.tasks.find import find_task, task_from_module

from .conftest import PREAMBLE, candidate_of, model

FILE = f"""{PREAMBLE}
class Model(nn.Module):
    def __init__(self, width, scale=1.0):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.scale = scale
    def forward(self, x, factor):
        return self.lin(x) * self.scale * factor

def get_inputs():
    return [torch.randn(4, 8), 3.0]

def get_inputs_tall():
    return [torch.randn(64, 8), 0.5]

def get_init_inputs():
    return [[8], {{"scale": 2.0}}]
"""


def test_constructor_arguments_and_workloads_reach_the_candidate(
    tmp_path: Path, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    path = tmp_path / "task.py"
    path.write_text(FILE)
    task = find_task(str(path))
    seen = make_evaluator(task).evaluate(candidate_of(FILE.replace("Model(", "ModelNew(")), "search", 60)
    assert seen.status is Status.PASSED, seen.failure
    assert [t.workload for t in seen.timings] == [w.name for w in task.workloads]
    assert {t.workload for t in seen.trials} == {"default", "tall"}


def test_a_live_module_brings_its_own_weights(make_evaluator: Callable[..., LocalEvaluator]) -> None:
    live = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    task = task_from_module(live, (torch.randn(4, 8),))
    source = model("return torch.relu(getattr(self, '0')(x))", "self.add_module('0', nn.Linear(8, 8))")
    seen = make_evaluator(task).evaluate(candidate_of(source), "search", 60)
    assert seen.status is Status.PASSED, seen.failure
