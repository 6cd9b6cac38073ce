"""`egg bench` times what is right, and only that."""

import json
from pathlib import Path

import pytest

from egg.cli.app import status


def test_a_wrong_kernel_is_not_timed(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["bench", "right.py", "liar.py", "--task", "task.py", "--tier", "search", "--json"]) == 1
    right, wrong = json.loads(capsys.readouterr().out)["candidates"]
    assert right["verified"]
    assert right["timings"][0]["candidate_p10_ms"] <= right["candidate_ms"] <= right["timings"][0]["candidate_p90_ms"]
    assert (wrong["verified"], wrong["timings"], wrong["speedup"]) == (False, [], None)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["--task", "task.py"], "name at least one candidate"),
        (["right.py", "--task", "task.py", "--set", "rows"], "write NAME=VALUE"),
        (["right.py", "--task", "task.py", "--set", "rows=8"], "right.py has no literal SCHEDULE"),
    ],
)
def test_bad_input_gets_a_sentence(
    command: list[str], said: str, kernels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["bench", *command]) == 2
    assert said in capsys.readouterr().err
