"""Tasks from text, their analyses, and candidates as running modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from egg.analysis.export import export_graph
from egg.expert.author import ExpertAuthor
from egg.knowledge.loader import load_principles
from egg.schema.analysis import Analysis
from egg.schema.candidate import Candidate
from egg.schema.device import Device
from egg.schema.plan import StagePlan
from egg.schema.task import Task
from egg.tasks.find import find_task
from egg.tasks.load import init_arguments, materialize

DEVICE = Device(
    name="two cores", kind="cpu", cores=2, vector_bytes=32, isa="avx2", copy_gbps=12.0, cache_gbps=80.0,
    peak_tflops={"float32": 0.1}, launch_us=2.0, l1_bytes=32768, l2_bytes=2**20, l3_bytes=2**25, source="measured",
)  # fmt: skip


def author() -> ExpertAuthor:
    """Returns the built-in author with the principles that come with the package."""
    return ExpertAuthor(DEVICE, load_principles())


def task_of(folder: Path, text: str, name: str = "task") -> Task:
    """Returns the task in a file with this text."""
    path = folder / f"{name}.py"
    path.write_text(f"import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n\n{text}")
    return find_task(str(path))


def analyses_of(task: Task) -> tuple[Analysis, ...]:
    """Returns the graph of each workload; costs are left at one."""
    return tuple(
        Analysis(
            task_hash=task.content_hash, workload=w.name, graph=export_graph(task, w), ops=(), flops=1, min_bytes=1,
            arithmetic_intensity=1.0, floor_ms=1.0, bound="memory",
        )
        for w in task.workloads
    )  # fmt: skip


def plan_for(parent: Candidate, option_id: str | None, stage: str = "structure") -> StagePlan:
    """Returns the plan to take one option."""
    return StagePlan.model_validate(
        {"index": 1, "stage": stage, "objective": "o", "hypothesis": "h", "principle_ids": ("fuse-rows",),
         "option_id": option_id, "predicted_effect": 1.0, "parent_id": parent.id, "allowance_s": 10.0}
    )  # fmt: skip


def written(task: Task, *structure: str) -> Candidate:
    """Returns the candidate that these structure options lead to."""
    agent, analyses = author(), analyses_of(task)
    candidate = agent.reference(task, analyses)
    for option_id in structure:
        candidate = agent.write(task, analyses, candidate, plan_for(candidate, option_id))
    return candidate


def imported(source: str, folder: Path, name: str = "candidate") -> ModuleType:
    """Returns a candidate's file as a module."""
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pair(
    task: Task, module: ModuleType, workload: int = 0
) -> tuple[nn.Module, nn.Module, tuple[Any, ...], dict[str, Any]]:
    """Returns reference and candidate with equal state, and arguments for one call."""
    loaded = materialize(task, task.workloads[workload], seed=1)
    args, kwargs = init_arguments(task, 1)
    model = module.ModelNew(*args, **kwargs)
    model.load_state_dict(loaded.module.state_dict(), strict=True)
    return loaded.module, model.train(loaded.module.training), loaded.args, loaded.kwargs


def assert_equal_calls(task: Task, module: ModuleType, workload: int = 0) -> None:
    """Checks that candidate and reference return the same and leave the same state behind."""
    reference, model, args, kwargs = pair(task, module, workload)
    with torch.no_grad():
        expected = reference(*args, **kwargs)
        got = model(*args, **kwargs)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(dict(model.state_dict()), dict(reference.state_dict()), rtol=1e-4, atol=1e-5)
