"""Trivial answers are held against a task's own check before anything is scored."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.evaluation.conftest import MakeTask, candidate_of, model

from egg.errors import TaskError
from egg.evaluation.audit.auditor import audit
from egg.evaluation.correctness import tolerance
from egg.evaluation.evaluator import House, LocalEvaluator
from egg.evaluation.roles.reference import Operations
from egg.evaluation.workers.local import LocalWorkplace
from egg.schema.audit import Audit
from egg.schema.evaluation import Status
from egg.schema.run import Config
from egg.schema.task import Task
from egg.tasks.find import task_from_module


@pytest.fixture
def audited(tmp_path: Path) -> Callable[[Task], Audit]:
    """Audits a task in this process."""

    def run(task: Task) -> Audit:
        operations = Operations()
        operations.do_load(task.model_dump_json(), str(tmp_path))
        seeds = count(7919, 104729)

        def ask(op: str, **fields: Any) -> dict[str, Any]:
            return getattr(operations, f"do_{op}")(**fields)

        return audit(task, "strict", ask, lambda: next(seeds), time.monotonic)

    return run


BARRED = [
    # forward, inputs, init, the reason begins with
    (  # BR-10
        "y = self.lin(x).max(dim=1, keepdim=True).values\nreturn F.gelu(y - y.mean(dim=1, keepdim=True))",
        "[torch.randn(8, 16)]",
        "self.lin = nn.Linear(16, 16)",
        "the output is always 0",
    ),
    ("return torch.relu(x) * 0 + 3.0", "[torch.randn(8, 16)]", "pass", "the output does not depend on the input"),
    ("return x.view(16, 8)", "[torch.randn(8, 16)]", "pass", "the output is an input as it is"),
    ("return x[:2, :5] + 0", "[torch.randn(8, 16)]", "pass", "the output is an input as it is"),
    ("return x * 3e-8 + y", "[torch.randn(8, 16), torch.randn(16)]", "pass", "the output is nearly an input as it is"),
    ("return x.sigmoid() > 2", "[torch.randn(8, 16)]", "pass", "the output is always 0"),
    ("return x.new_ones(4, dtype=torch.long)", "[torch.randn(8, 16)]", "pass", "the output does not depend on the"),
    ("return x[:0]", "[torch.randn(8, 16)]", "pass", "nothing is compared"),
]


@pytest.mark.parametrize(("forward", "inputs", "init", "reason"), BARRED)
def test_a_task_that_a_trivial_answer_passes_is_barred(
    forward: str, inputs: str, init: str, reason: str, make_task: MakeTask, audited: Callable[[Task], Audit]
) -> None:
    found = audited(make_task(forward, inputs, init))
    assert found.verdict == "barred"
    assert found.reason.startswith(reason)
    assert found.counting == ()


REDRAWN = [
    # forward, inputs, init, what passes with the task's own draws, what catches it
    ("return torch.relu(x)", "[torch.rand(8, 16)]", "pass", "passthrough (args[0])", "signed"),
    ("return F.leaky_relu(x)", "[torch.rand(8, 16)]", "pass", "passthrough (args[0])", "signed"),
    (
        "return self.norm(x)",
        "[torch.randn(8, 16)]",
        "self.norm = nn.LayerNorm(16)",
        "other weights",
        "own, other weights",
    ),
    ("return x.abs().max()", "[torch.rand(512, 1024)]", "pass", "stored output", "signed"),
]


@pytest.mark.parametrize(("forward", "inputs", "init", "passes", "caught_by"), REDRAWN)
def test_a_task_with_unlucky_draws_is_scored_under_others(
    forward: str, inputs: str, init: str, passes: str, caught_by: str, make_task: MakeTask,
    audited: Callable[[Task], Audit],
) -> None:  # fmt: skip
    found = audited(make_task(forward, inputs, init))
    assert found.verdict == "redrawn", found.reason
    assert found.counting[0] == "own"
    assert caught_by in found.counting
    missed = [p for p in found.probes if p.draws == "own" and p.answer == passes]
    assert [p.caught for p in missed] == [False]
    assert any(p.caught for p in found.probes if p.draws == caught_by and p.answer == passes)


SCORABLE = [
    ("return torch.softmax(x, -1)", "[torch.randn(2, 65536)]", "pass"),
    ("return F.mse_loss(x, y)", "[torch.rand(512, 1024), torch.rand(512, 1024)]", "pass"),
    ("return x.argmax(-1)", "[torch.randn(64, 16)]", "pass"),
    ("values, places = x.topk(3)\nreturn {'values': values, 'places': places}", "[torch.randn(64, 16)]", "pass"),
    ("return x.mean(-1, keepdim=True).expand(8, 16)", "[torch.randn(8, 16)]", "pass"),
    ("return x * y", "[torch.randn(8, 16), 3.5]", "pass"),
    ("return torch.fft.fft(x)", "[torch.randn(8, 16)]", "pass"),
    ("return torch.softmax(x, -1).to(torch.bfloat16)", "[torch.randn(8, 64)]", "pass"),
    ("return self.drop(self.lin(x)).softmax(1)", "[torch.rand(8, 16)]",
     "self.lin = nn.Linear(16, 16)\nself.drop = nn.Dropout(0.2)"),
    ("x.mul_(2).add_(1)\nreturn None", "[torch.randn(8, 16)]", "pass"),
    ("return x.cos()", "[torch.randn(8, 16)]", "self.unused = nn.Linear(16, 16)"),
]  # fmt: skip


@pytest.mark.parametrize(("forward", "inputs", "init"), SCORABLE)
def test_an_ordinary_task_is_scorable(
    forward: str, inputs: str, init: str, make_task: MakeTask, audited: Callable[[Task], Audit]
) -> None:
    found = audited(make_task(forward, inputs, init))
    assert found.verdict == "scorable", found.reason
    assert found.counting == ("own",)
    caught = [p for p in found.probes if p.counts]
    assert {"zeros", "constant", "stored output"} <= {p.name for p in caught}
    assert all(p.excess is None or p.excess >= tolerance.TRIVIAL_MARGIN for p in caught)


def test_what_is_no_flaw_does_not_count(make_task: MakeTask, audited: Callable[[Task], Audit]) -> None:
    repeated = audited(make_task("return x.mean(-1, keepdim=True).expand(8, 16)", "[torch.randn(8, 16)]"))
    assert [(p.answer, p.caught) for p in repeated.probes if not p.counts] == [("row mean (axis 1)", False)]
    unused = audited(make_task("return x.cos()", "[torch.randn(8, 16)]", "self.unused = nn.Linear(16, 16)"))
    assert {p.name for p in unused.probes if not p.counts} == {"other weights"}


def test_a_reference_that_fails_is_an_error_of_the_task(make_task: MakeTask, audited: Callable[[Task], Audit]) -> None:
    with pytest.raises(TaskError, match="gives NaN"):
        audited(make_task("return torch.log(x)", "[-torch.rand(8, 16) - 1]"))


def test_every_workload_has_to_be_scorable(tmp_path: Path, audited: Callable[[Task], Audit]) -> None:
    from torch import nn, randn, zeros

    task = task_from_module(nn.Tanh(), (randn(8, 16),), workloads={"still": ((zeros(4, 4),), {})})
    found = audited(task)
    assert found.verdict == "barred"
    assert "in workload still" in found.reason


def test_nothing_is_scored_with_a_barred_task(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator], tmp_path: Path, workplace: LocalWorkplace
) -> None:
    """BR-10."""
    task = make_task("return torch.relu(x) * 0", "[torch.randn(8, 16)]")
    zeros = candidate_of(model("return torch.zeros_like(x)"))
    evaluator = make_evaluator(task)
    assert evaluator.evaluate(zeros, "search", 60).status is Status.PASSED
    with pytest.raises(TaskError, match="is barred, nothing can be shown with it: the output is always 0"):
        evaluator.evaluate(zeros, "attest", 60)
    house = House(lock_path=tmp_path / "lock", barred_ok=True)
    lenient = LocalEvaluator(task, Config(threads=1), tmp_path / "lenient", (), house, workplace)
    assert lenient.audit().verdict == "barred"
    seen = lenient.evaluate(zeros, "search", 60)
    lenient.close()
    assert seen.status is Status.PASSED
    assert any("barred" in finding for finding in seen.findings)
    assert seen.not_claimed == f"barred: {seen.barred}"
    assert "the output is always 0" in seen.barred


def test_a_candidate_of_a_redrawn_task_is_checked_by_the_draws_that_count(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    task = make_task("return torch.relu(x)", "[torch.rand(8, 16)]")
    evaluator = make_evaluator(task)
    assert evaluator.audit().counting == ("own", "signed")
    seen = evaluator.evaluate(candidate_of(model("return x + 0")), "search", 60)
    assert seen.status is Status.WRONG_VALUE
    assert seen.trials[-1].kind == "signed"
    honest = evaluator.evaluate(candidate_of(model("return x.clamp(min=0)")), "search", 60)
    assert honest.status is Status.PASSED, honest.failure
    assert "signed" in {t.kind for t in honest.trials}


def test_a_verdict_is_kept_until_task_or_check_change(
    make_task: MakeTask, tmp_path: Path, workplace: LocalWorkplace
) -> None:
    def verdict(task: Task, name: str) -> Audit:
        house = House(lock_path=tmp_path / "lock", audits=tmp_path / "audits")
        evaluator = LocalEvaluator(task, Config(threads=1), tmp_path / name, (), house, workplace)
        found = evaluator.audit()
        evaluator.close()
        return found

    task = make_task("return torch.cos(x)", "[torch.randn(8, 16)]")
    first = verdict(task, "first")
    assert verdict(task, "second") == first
    (kept,) = (tmp_path / "audits").iterdir()
    kept.write_text("{")
    assert verdict(task, "third").verdict == "scorable"
    assert (
        verdict(make_task("return torch.sin(x)", "[torch.randn(8, 16)]"), "fourth").content_hash != first.content_hash
    )
    assert len(list((tmp_path / "audits").iterdir())) == 2
