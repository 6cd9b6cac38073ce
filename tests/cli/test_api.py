import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Fakes

import egg
from egg.api import load_winner
from egg.errors import UsageError
from egg.testing import factories as make

SOURCE = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return x * self.weight


def get_inputs():
    return [torch.randn(2, 4)]


def get_init_inputs():
    return [4]
"""


def test_the_result_is_that_of_the_command_line(fakes: Fakes) -> None:
    result = egg.optimize("task.py", out="run", budget=8)
    assert result.record == json.loads(Path("run/result.json").read_text())
    assert result.verified
    assert result.speedup["eager"]["value"] > 1.0
    assert result.kernel.is_absolute()
    assert "class ModelNew" in result.kernel.read_text()
    assert result.report.is_file()


def test_a_mistake_is_a_usage_error_and_writes_nothing(fakes: Fakes, tmp_path: Path) -> None:
    for bad in ({"budget": "soon"}, {"model": "gpt"}, {"principles": "nowhere"}, {"args": (1,)}):
        with pytest.raises(UsageError):
            egg.optimize("task.py", **bad)
    assert list(tmp_path.iterdir()) == []


def test_a_run_in_the_folder_is_refused(fakes: Fakes) -> None:
    egg.optimize("task.py", out="run", budget=8)
    with pytest.raises(UsageError, match="egg resume run"):
        egg.optimize("task.py", out="run", budget=8)


def test_the_winner_is_loaded_with_the_reference_weights(tmp_path: Path) -> None:
    import torch

    from egg.tasks.find import find_task
    from egg.tasks.load import materialize

    path = tmp_path / "scale.py"
    path.write_text(SOURCE)
    task = find_task(str(path))
    source = SOURCE.replace("class Model(", "class ModelNew(").replace(
        "        return x * self.weight",
        "        return x * self.weight * SCHEDULE['factor']\n\n    def prepare(self):\n        self.ready = True",
    )
    knob = make.make_knob(choices=(1, 3))
    candidate = make.make_candidate(
        source=f"SCHEDULE = {{'factor': 1}}\n{source}", schedule={"factor": 3}, schedule_space={"factor": knob}
    )
    attempt = make.make_attempt(candidate=candidate)
    started = make.make_run_started(task=task)
    state = make.make_state(attempt, started=started, outcome=make.make_outcome(winner_id=candidate.id))
    winner = load_winner(state)
    loaded = materialize(task, task.workloads[0], seed=0)
    with torch.no_grad():
        assert torch.equal(winner(*loaded.args), loaded.module(*loaded.args) * 3)
    assert winner.ready is True
    with pytest.raises(UsageError, match="no verified winner"):
        load_winner(state.updated(outcome=make.make_outcome(verified=False)))


@pytest.mark.parametrize(
    ("candidate", "task", "more", "said"),
    [
        (3, "task.py", {}, "a candidate of type int: give a path"),
        ("none.py", "task.py", {}, "none.py is not a file"),
        ("x = 1\n", "task.py", {}, "the given source defines no ModelNew"),
        ("x = 1\n", 3, {}, r"give a file, package.module:Class, or a pair \(module, inputs\)"),
        ("x = 1\n", "task.py", {"ladder": ["jax"]}, "choose from eager"),
        ("x = 1\n", "task.py", {"policy": "loose"}, "'loose'"),
    ],
)
def test_what_can_not_be_verified_is_named(
    candidate: object, task: object, more: dict[str, object], said: str, fakes: Fakes
) -> None:
    with pytest.raises(UsageError, match=said):
        egg.verify(candidate, task, **more)


def test_importing_egg_is_light() -> None:
    code = (
        "import egg, sys; print([m for m in ('torch', 'pydantic', 'egg.api') if m in sys.modules], "
        "egg.optimize.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] optimize\n"


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(AttributeError, match="'optimise'"):
        egg.optimise  # noqa: B018
