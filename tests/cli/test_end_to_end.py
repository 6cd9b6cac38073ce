"""The whole house on a small task: real analysis, author, workers and archive."""

import shutil
from pathlib import Path

import pytest
import torch

from egg import compose, runs
from egg.api import load_winner
from egg.cli.app import status
from egg.request import Request
from egg.tasks.load import materialize

SOURCE = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        return torch.tanh(x * 2.0 + y) * torch.sigmoid(y) + x


def get_inputs():
    return [torch.randn(64, 1000), torch.randn(1000)]
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_small_task_gets_a_verified_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EGG_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "gate.py"
    file.write_text(SOURCE)
    task = compose.find_task(str(file))
    request = Request(budget_s=None, budget_attempts=3, ladder=("eager",))
    state = runs.start(task, tmp_path / "run", request)
    assert state.outcome is not None
    assert state.outcome.verified
    assert [a.evaluation.failure for a in state.attempts] == [None] * 3
    assert any(a.candidate.language == "cpp" for a in state.attempts)
    for name in (runs.RESULT, runs.KERNEL, runs.REPORT):
        assert (tmp_path / "run" / name).stat().st_size > 100
    assert status(["show", str(tmp_path / "run"), "--json"]) == 0
    loaded = materialize(task, task.workloads[0], seed=3)
    with torch.no_grad():
        torch.testing.assert_close(load_winner(state)(*loaded.args), loaded.module(*loaded.args))


def test_a_barred_task_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EGG_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "nothing.py"
    path.write_text(
        "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n    def forward(self, x):\n"
        "        y = x.amax(dim=1, keepdim=True)\n"
        "        return nn.functional.gelu(y - y.mean(dim=1, keepdim=True))\n\n\n"
        "def get_inputs():\n    return [torch.randn(8, 16)]\n"
    )
    assert status(["optimize", str(path), "--out", str(tmp_path / "run"), "--budget", "3"]) == 2
    told = capsys.readouterr().err
    assert "nothing is barred" in told
    assert "the output is always 0" in told
    assert "attempt" not in told
