"""Real workers for the tests of the evaluation room: one warm process for all, one evaluator a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from egg.evaluation.evaluator import House, LocalEvaluator
from egg.evaluation.tiers import Limits
from egg.evaluation.workers.local import LocalWorkplace
from egg.schema.candidate import Candidate
from egg.schema.evaluation import Evaluation
from egg.schema.run import Config
from egg.schema.task import Task
from egg.tasks.find import find_task

TASKS = Path(__file__).parent / "tasks"
PREAMBLE = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"

MakeTask = Callable[..., Task]
EvaluatorFor = Callable[[str], LocalEvaluator]
Judge = Callable[..., Evaluation]


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWorkplace]:
    place = LocalWorkplace(threads=1, folder=tmp_path_factory.mktemp("workplace"))
    yield place
    place.close()


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    def make(forward: str, inputs: str, init: str = "pass", training: bool | None = None) -> Task:
        body = "\n".join(f"        {line}" for line in forward.splitlines())
        setup = "\n".join(f"        {line}" for line in init.splitlines())
        path = tmp_path / "task.py"
        path.write_text(
            f"{PREAMBLE}\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n{setup}\n"
            f"    def forward(self, x, y=None):\n{body}\n\ndef get_inputs():\n    return {inputs}\n"
        )
        return find_task(str(path), training=training)

    return make


def candidate_of(source: str, schedule: dict[str, int] | None = None, **more: object) -> Candidate:
    return Candidate.model_validate(
        {"language": "torch", "source": source, "author": "test", "rationale": "", "schedule": schedule or {}} | more
    )


def model(forward: str, init: str = "pass", before: str = "") -> str:
    """Returns the source of a candidate."""
    body = "\n".join(f"        {line}" for line in forward.splitlines())
    setup = "\n".join(f"        {line}" for line in init.splitlines())
    return (
        f"{PREAMBLE}{before}\nclass ModelNew(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n{setup}\n"
        f"    def forward(self, x, y=None):\n{body}\n"
    )


@pytest.fixture
def make_evaluator(workplace: LocalWorkplace, tmp_path: Path) -> Iterator[Callable[..., LocalEvaluator]]:
    made: list[LocalEvaluator] = []

    def make(task: Task, limits: Limits | None = None) -> LocalEvaluator:
        house = House(limits=limits or Limits(), lock_path=tmp_path / "lock")
        evaluator = LocalEvaluator(task, Config(threads=1), tmp_path / f"work{len(made)}", (), house, workplace)
        made.append(evaluator)
        return evaluator

    yield make
    for evaluator in made:
        evaluator.close()


@pytest.fixture(scope="session")
def evaluator_for(workplace: LocalWorkplace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EvaluatorFor]:
    """Gives the evaluator of a task in `tasks/` by name; one serves all tests, so its reference stays warm."""
    made: dict[str, LocalEvaluator] = {}

    def make(name: str) -> LocalEvaluator:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            house = House(lock_path=folder / "lock")
            task = find_task(str(TASKS / f"{name}.py"))
            made[name] = LocalEvaluator(task, Config(threads=1), folder / "work", (), house, workplace)
        return made[name]

    yield make
    for evaluator in made.values():
        evaluator.close()


@pytest.fixture
def judge(make_evaluator: Callable[..., LocalEvaluator]) -> Judge:
    """Evaluates the source of a candidate for a task in the search tier."""

    def run(task: Task, source: str, allowance_s: float = 60.0) -> Evaluation:
        return make_evaluator(task).evaluate(candidate_of(source), "search", allowance_s)

    return run
