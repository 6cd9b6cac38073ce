"""Evaluations on a GPU; without one, every test here is skipped and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from egg.evaluation.evaluator import LocalEvaluator
from egg.evaluation.house import House
from egg.evaluation.tiers import Limits
from egg.evaluation.workers.local import LocalWorkplace
from egg.schema.candidate import Candidate
from egg.schema.evaluation import Evaluation, Tier
from egg.schema.run import Config
from egg.tasks.find import find_task

PREAMBLE = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"

Judge = Callable[..., Evaluation]
EvaluatorFor = Callable[[str], LocalEvaluator]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    import torch

    missing = pytest.mark.skip(reason="no CUDA device")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            if not torch.cuda.is_available():
                item.add_marker(missing)


def module(forward: str, init: str = "pass", before: str = "", name: str = "ModelNew") -> str:
    """Returns the source of a module."""
    body = "\n".join(f"        {line}" for line in forward.splitlines())
    setup = "\n".join(f"        {line}" for line in init.splitlines())
    return (
        f"{PREAMBLE}{before}\nclass {name}(nn.Module):\n    def __init__(self):\n        super().__init__()\n{setup}\n"
        f"    def forward(self, x):\n{body}\n"
    )


def candidate_of(source: str) -> Candidate:
    return Candidate(language="cuda", source=source, author="test", rationale="")


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWorkplace]:
    """One for all evaluators, since it loads the libraries."""
    place = LocalWorkplace(threads=4, folder=tmp_path_factory.mktemp("workplace"))
    yield place
    place.close()


@pytest.fixture(scope="session")
def evaluator_for(workplace: LocalWorkplace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EvaluatorFor]:
    """Gives the evaluator of a task in `tasks/` by name; one at a time, since each holds memory of the device."""
    made: dict[str, LocalEvaluator] = {}

    def make(name: str) -> LocalEvaluator:
        if name not in made:
            close()
            folder = tmp_path_factory.mktemp(name)
            house = House(Limits.trusting(), lock_path=folder / "lock")
            task = find_task(str(Path(__file__).parent / "tasks" / f"{name}.py"))
            config = Config(threads=4, target="cuda")
            made[name] = LocalEvaluator(task, config, folder / "work", (), house, workplace)
        return made[name]

    def close() -> None:
        for evaluator in made.values():
            evaluator.close()
        made.clear()

    yield make
    close()


@pytest.fixture
def judge(workplace: LocalWorkplace, tmp_path: Path) -> Iterator[Judge]:
    """Evaluates sources against `2 * x` or another task on the GPU, one evaluator a test."""
    made: list[LocalEvaluator] = []

    def run(
        source: str, tier: Tier = "search", task: str = "return 2 * x", inputs: str = "[torch.randn(2048, 2048)]"
    ) -> Evaluation:
        if not made:
            path = tmp_path / "task.py"
            path.write_text(module(task, name="Model") + f"\ndef get_inputs():\n    return {inputs}\n")
            house = House(Limits.trusting(), lock_path=tmp_path / "lock")  # what a GPU does, whatever the kernel offers
            config = Config(threads=4, target="cuda")
            made.append(LocalEvaluator(find_task(str(path)), config, tmp_path / "work", (), house, workplace))
        return made[0].evaluate(candidate_of(source), tier, 300)

    yield run
    for evaluator in made:
        evaluator.close()
