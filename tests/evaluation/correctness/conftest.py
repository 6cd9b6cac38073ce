"""One trial of one candidate, without workers of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from egg.evaluation.correctness.trials import TrialKind
from egg.evaluation.roles.candidate import Operations as Candidate
from egg.evaluation.roles.reference import Operations as Reference
from egg.schema.task import Policy, Task

Try = Callable[..., dict[str, Any]]


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Try:
    """Holds the source of a candidate against a task in one trial, both in this process."""
    monkeypatch.chdir(tmp_path)

    def run(
        task: Task, source: str, trial: TrialKind, before: TrialKind | None = None, policy: Policy = "strict"
    ) -> dict[str, Any]:
        folder = str(tmp_path)
        reference, candidate = Reference(), Candidate()
        loaded = reference.do_load(task.model_dump_json(), folder, policy)
        candidate.do_inspect(source)
        candidate.do_import(source, "candidate_of_a_trial", {})
        candidate.do_construct("ModelNew", loaded["init"], folder, loaded["seed"], task.training)
        verdict: dict[str, Any] = {}
        first = before or TrialKind("own", state="redrawn")
        for kind in (trial,) if trial == first else (first, trial):
            draw = reference.do_draw(folder, "default", 7, vars(kind), False)
            if "skipped" in draw:
                return draw
            for _ in range(kind.repeats):
                if "state" in draw:
                    candidate.do_load_state(draw["state"], folder)
                candidate.do_call(draw["inputs"], folder, 7, kind.reuse, kind.gradients, kind.state == "continued")
                verdict = reference.do_judge(folder, candidate.do_send(folder))
                if "message" in verdict:
                    return verdict
        return verdict

    return run
