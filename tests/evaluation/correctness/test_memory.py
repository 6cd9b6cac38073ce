"""Trials for which memory runs out: left out with the reason, unless a candidate may hold the memory to be spared."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.evaluation.conftest import MakeTask

from egg.evaluation.checks import Checks
from egg.evaluation.correctness.trials import TrialKind
from egg.evaluation.desk import CandidateFailed
from egg.evaluation.devices.cpu import CpuDevice
from egg.evaluation.roles.reference import Operations
from egg.evaluation.setting import Notes
from egg.schema.evaluation import Status

SHORT_FOR_LARGE = "if x.abs().max() > 50:\n    raise torch.OutOfMemoryError('CUDA out of memory')\nreturn x + 1"
ROWS = "[torch.rand(8, 16) + 1]"


def drawn(make_task: MakeTask, tmp_path: Path, kind: TrialKind) -> dict[str, Any]:
    operations = Operations()
    operations.do_load(make_task(SHORT_FOR_LARGE, ROWS).model_dump_json(), str(tmp_path))
    return operations.do_draw(str(tmp_path), "default", 1, vars(kind), False)


@pytest.mark.parametrize("crowded", [False, True])
def test_a_draw_without_room_is_left_out_and_says_whether_others_hold_the_memory(
    make_task: MakeTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crowded: bool
) -> None:
    monkeypatch.setattr(CpuDevice, "crowded", lambda self: crowded)
    answer = drawn(make_task, tmp_path, TrialKind("outlier", values="outlier"))
    assert answer == {"skipped": "there is not enough memory left for it", "crowded": crowded}


def test_another_reason_is_nobody_s_memory(
    make_task: MakeTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CpuDevice, "crowded", lambda self: True)
    answer = drawn(make_task, tmp_path, TrialKind("extreme integers", values="extreme integers"))
    assert answer == {"skipped": "no input can hold such values", "crowded": False}


@pytest.mark.parametrize("answer", ["draw", "judge"])
def test_a_candidate_that_holds_the_memory_is_not_spared_the_trial(tmp_path: Path, answer: str) -> None:
    skipped = {"skipped": "there is not enough memory left for it", "crowded": True}
    answers: dict[str, dict[str, Any]] = {
        "begin": {}, "draw": {"inputs": {"tuple": []}}, "judge": {"leaves": []}, answer: skipped,
    }  # fmt: skip
    ours: Any = SimpleNamespace(desk=SimpleNamespace(ask=lambda op, **_: answers[op]))
    theirs: Any = SimpleNamespace(ask=lambda phase, op, **_: {"settings_changed": []})
    plan = SimpleNamespace(trials=(TrialKind("outlier", values="outlier"),), check_s=60.0)
    setting: Any = SimpleNamespace(
        folder=tmp_path, plan=plan, policy="strict", left_s=lambda: 60.0, entropy=lambda: 1, task=None
    )
    workload: Any = SimpleNamespace(name="default")
    with pytest.raises(CandidateFailed) as failed:
        Checks(setting, ours, theirs, Notes()).run(workload)
    assert failed.value.status is Status.OUT_OF_MEMORY
    assert "the trial 'outlier'" in failed.value.failure.message
