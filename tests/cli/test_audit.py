"""`egg audit` on single tasks and on suites, with tasks that end or hang their process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from egg import auditing
from egg.auditing import Asked, Subject
from egg.cli.app import status
from egg.schema.audit import Audit, AuditOutcome, Scorability

HEAD = "import os, time, torch\nfrom torch import nn\n\n\n"
MODEL = "class Model(nn.Module):\n    def forward(self, x):\n        return {body}\n\n\n"
INPUTS = "def get_inputs():\n    return [torch.randn(8, 16)]\n"
TASKS = {
    "level1/1_cos.py": HEAD + MODEL.format(body="torch.cos(x)") + INPUTS,
    "level1/2_nothing.py": HEAD + MODEL.format(body="x * 0") + INPUTS,
    "level1/10_gone.py": HEAD + MODEL.format(body="os._exit(7)") + INPUTS,
    "level2/1_stuck.py": HEAD + MODEL.format(body="time.sleep(600)") + INPUTS,
    "level2/2_lost.py": "import einops_is_not_here\n" + HEAD + MODEL.format(body="x") + INPUTS,
}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for name, text in TASKS.items():
        path = tmp_path / "suite" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "suite"


def outcome_of(name: str, verdict: Scorability | None = "scorable", **more: object) -> AuditOutcome:
    found = None
    if verdict is not None:
        found = Audit(task=name, content_hash="0", policy="strict", verdict=verdict, reason=f"it is {verdict}")
    return AuditOutcome.model_validate({"name": name, "text_hash": "", "audit": found, "wall_s": 1.0} | more)


def test_a_suite_is_audited_task_by_task_and_goes_on_where_it_stopped(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = suite / "audit.jsonl"
    command = ["audit", str(suite), "--out", str(out), "--json", "--jobs", "2", "--deadline-s", "9"]
    assert status(command) == 1
    first = json.loads(capsys.readouterr().out)
    assert first["counts"] == {
        "barred": 1, "no verdict (task)": 2, "no verdict (timeout)": 1, "scorable": 1,
    }  # fmt: skip
    by_name = {o["name"]: o for o in first["outcomes"]}
    assert list(by_name) == ["level1/1_cos", "level1/2_nothing", "level1/10_gone", "level2/1_stuck", "level2/2_lost"]
    assert "exit status 7" in by_name["level1/10_gone"]["message"]
    assert "9 s" in by_name["level2/1_stuck"]["message"]
    assert "einops_is_not_here" in by_name["level2/2_lost"]["message"]
    assert by_name["level1/2_nothing"]["audit"]["reason"].startswith("the output is always 0")

    with out.open("a") as sink:
        sink.write('{"name": "torn')
    assert status(command) == 1
    assert json.loads(capsys.readouterr().out) == first
    (suite / "level1/2_nothing.py").write_text(TASKS["level1/1_cos.py"])
    assert status([*command, "--levels", "1"]) == 2
    assert json.loads(capsys.readouterr().out)["counts"] == {"no verdict (task)": 1, "scorable": 2}


def test_what_still_runs_when_the_time_is_over_is_put_off(suite: Path) -> None:
    began = time.monotonic()
    found = list(auditing.audits(auditing.subjects_of(str(suite / "level2")), Asked(limit_s=12.0)))
    assert time.monotonic() - began < 60
    assert "stuck" not in " ".join(o.name for o in found)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([outcome_of("a"), outcome_of("b", "redrawn")], 0),
        ([outcome_of("a"), outcome_of("b", "barred"), outcome_of("c", None, fault="task")], 1),
        ([outcome_of("a"), outcome_of("b", None, fault="timeout")], 2),
        ([outcome_of("a", "barred"), outcome_of("b", None, fault="house")], 3),
    ],
)
def test_the_status_is_the_gravest(
    outcomes: list[AuditOutcome], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def subjects(spec: str, inputs: str | None, levels: Sequence[int]) -> list[Subject]:
        return [Subject(o.name, o.name) for o in outcomes]

    def audits(subjects: Sequence[Subject], asked: Asked) -> Iterator[AuditOutcome]:
        yield from outcomes

    monkeypatch.setattr(auditing, "subjects_of", subjects)
    monkeypatch.setattr(auditing, "audits", audits)
    assert status(["audit", "suite"]) == code
    shown = capsys.readouterr()
    assert f"{len(outcomes)} of {len(outcomes)} tasks" in shown.out
    assert f"{len(outcomes)}/{len(outcomes)} {outcomes[-1].name}" in shown.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["no/such/folder/"], "no/such/folder"),
        ([".", "--inputs", "a:b"], "leave --inputs away"),
        (["."], "holds no tasks"),
        (["x.py", "--jobs", "0"], "--jobs 0"),
        (["x.py", "--limit-s", "0"], "--limit-s 0"),
        (["x.py", "--out", "nowhere/file"], "there is no folder nowhere"),
    ],
)
def test_what_can_not_be_is_told(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert status(["audit", *arguments]) == 2
    shown = capsys.readouterr()
    assert told in shown.out + shown.err


def test_one_task_is_shown_with_its_probes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "relu.py"
    path.write_text(HEAD + MODEL.format(body="torch.relu(x)") + INPUTS.replace("randn", "rand"))
    assert status(["audit", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "relu: redrawn" in shown
    assert "passthrough (args[0])" in shown
    assert "signed" in shown
