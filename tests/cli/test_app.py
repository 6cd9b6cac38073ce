import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Fakes

import egg
from egg import runs
from egg.cli.app import status
from egg.errors import ArchiveError, EggError, ModelError, SandboxError, TaskError, UsageError
from egg.schema.run import RunFinished
from egg.testing import factories as make

FILES = ("events.jsonl", "kernel.py", "report.html", "result.json")


def test_optimize_writes_the_folder_and_prints_the_table(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["optimize", "task.py", "--budget", "12"]) == 0
    folder = Path("egg-out/add_one")
    assert all((folder / name).is_file() for name in FILES)
    out, err = capsys.readouterr()
    assert "as fast as eager" in out
    assert str(folder / "report.html") in out
    assert "attempt  1  structure" in err
    assert "best so far" in err
    assert "\x1b" not in out + err


def test_json_is_the_only_thing_on_stdout(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["optimize", "task.py", "--budget", "8", "--json", "--out", "run"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(Path("run/result.json").read_text())
    assert printed["verified"] is True
    assert printed["attempts"] == 8


@pytest.mark.parametrize("command", ["show", "replay", "resume"])
def test_a_finished_run_is_shown_again(command: str, fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    status(["optimize", "task.py", "--budget", "8", "--json", "--out", "run"])
    first = capsys.readouterr().out
    tried = len(fakes.evaluator.evaluated)
    assert status([command, "run", "--json"]) == 0
    assert capsys.readouterr().out == first
    assert len(fakes.evaluator.evaluated) == tried


def test_replay_writes_lost_files_again(fakes: Fakes) -> None:
    status(["optimize", "task.py", "--budget", "8", "--out", "run"])
    before = {name: Path("run", name).read_bytes() for name in FILES}
    for name in FILES[1:]:
        Path("run", name).unlink()
    assert status(["replay", "run"]) == 0
    assert {name: Path("run", name).read_bytes() for name in FILES} == before


def test_report_prints_where_it_is_or_markdown(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    status(["optimize", "task.py", "--budget", "8", "--out", "run"])
    capsys.readouterr()
    assert status(["report", "run"]) == 0
    assert capsys.readouterr().out == "run/report.html\n"
    assert status(["report", "run", "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("## add one: ")


def test_an_interrupted_run_goes_on(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    def lose_power() -> None:
        if len(fakes.evaluator.evaluated) == 4:
            raise SystemExit(9)

    fakes.evaluator.pause = lose_power
    with pytest.raises(SystemExit):
        status(["optimize", "task.py", "--budget", "9", "--out", "run"])
    assert not Path("run/result.json").exists()
    assert status(["show", "run"]) == 1
    assert "Not finished" in capsys.readouterr().out
    fakes.evaluator.pause = lambda: None
    assert status(["resume", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["attempts"] == 9
    assert len({(c, t) for c, t in fakes.evaluator.evaluated}) == len(fakes.evaluator.evaluated)


def test_a_torn_log_is_told_and_the_rest_is_shown(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["optimize", "task.py", "--out", "run", "--budget", "4"]) == 0
    with Path("run/events.jsonl").open("a") as log:
        log.write('{"type": "attempt_fin')
    capsys.readouterr()
    assert status(["show", "run"]) == 0
    shown = capsys.readouterr()
    assert "egg: warning:" in shown.err
    assert "run/events.jsonl" in shown.err
    assert "add one" in shown.out


def test_a_run_that_was_killed_before_its_first_event_is_started_again(fakes: Fakes) -> None:
    Path("run").mkdir()
    Path("run/events.jsonl").write_text('{"type": "run_sta')
    assert status(["optimize", "task.py", "--out", "run", "--budget", "4"]) == 0
    assert Path("run/result.json").exists()


def test_a_run_in_the_folder_is_not_lost(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    status(["optimize", "task.py", "--budget", "8", "--out", "run"])
    before = Path("run/events.jsonl").read_bytes()
    capsys.readouterr()
    assert status(["optimize", "task.py", "--out", "run"]) == 2
    err = capsys.readouterr().err
    assert "egg resume run" in err
    assert "--out" in err
    assert Path("run/events.jsonl").read_bytes() == before


def test_principles_of_the_user_are_used_and_kept(fakes: Fakes) -> None:
    own = Path("own/structure/fuse.md")
    own.parent.mkdir(parents=True)
    own.write_text('+++\ntitle = "My own rule"\nexpects = "less"\n+++\nDo it.\n')
    assert status(["optimize", "task.py", "--budget", "12", "--out", "run", "--principles", "own"]) == 0
    assert "My own rule" in Path("run/report.html").read_text()
    own.unlink()
    assert status(["replay", "run"]) == 0
    assert "My own rule" in Path("run/report.html").read_text()


def test_without_a_verified_winner_the_status_is_1(fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:
    status(["optimize", "task.py", "--budget", "8", "--out", "run"])
    state = runs.read(Path("run"))
    assert state.outcome is not None
    unverified = RunFinished(outcome=state.outcome.updated(verified=False, faster=False))
    monkeypatch.setattr(runs, "read", lambda _: state.updated(outcome=unverified.outcome))
    assert status(["show", "run"]) == 1


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        (["optimize", "task.py", "--buget", "3s"], "Did you mean --budget?"),
        (["optimise", "task.py"], 'Did you mean "optimize"?'),
        (["optimize"], "TASK"),
        (["optimize", "task.py", "--seed", "one"], "--seed"),
        (["optimize", "task.py", "--policy", "loose"], "strict"),
        (["optimize", "task.py", "--target", "cuda"], "for the CPU only"),
        (["optimize", "task.py", "--budget", "soon"], "write seconds (60s)"),
        (["optimize", "task.py", "--budget", "0"], "nothing can be done in no time"),
        (["optimize", "task.py", "--budget", "1.5"], "whole numbers"),
        (["optimize", "task.py", "--budget=-3s"], "write seconds (60s)"),
        (["optimize", "task.py", "--model", "gpt"], "there is expert"),
        (["optimize", "task.py", "--principles", "nowhere"], "no such folder"),
        (["show", "nowhere"], "holds no run"),
        (["resume", "nowhere"], "holds no run"),
        (["replay", "nowhere"], "holds no run"),
    ],
)
def test_a_mistake_gives_2_names_the_fix_and_writes_nothing(
    tokens: list[str], says: str, fakes: Fakes, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert status(tokens) == 2
    out, err = capsys.readouterr()
    assert says in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_gives_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert status(["optimize", str(tmp_path / "missing.py")]) == 2
    assert "missing.py" in capsys.readouterr().err


def test_out_that_is_a_file_gives_2(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("taken").write_text("mine")
    assert status(["optimize", "task.py", "--out", "taken"]) == 2
    assert "it is a file" in capsys.readouterr().err
    assert Path("taken").read_text() == "mine"


def test_files_of_others_are_not_overwritten(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine").mkdir()
    Path("mine/kernel.py").write_text("mine")
    assert status(["optimize", "task.py", "--out", "mine"]) == 2
    assert "holds kernel.py, which would be overwritten" in capsys.readouterr().err
    assert [path.name for path in Path("mine").iterdir()] == ["kernel.py"]
    assert Path("mine/kernel.py").read_text() == "mine"


def test_inputs_belong_to_a_class(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["optimize", "task.py", "--inputs", "m:f"]) == 2
    assert "get_inputs" in capsys.readouterr().err
    assert status(["optimize", "package.module:Class", "--inputs", "no function"]) == 2
    assert "module:function" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UsageError("u"), 2),
        (TaskError("t"), 2),
        (ModelError("m"), 3),
        (SandboxError("s"), 3),
        (ArchiveError("a"), 3),
        (KeyboardInterrupt(), 1),
    ],
)
def test_each_error_has_its_status(
    error: BaseException,
    expected: int,
    fakes: Fakes,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(runs, "start", fail)
    assert status(["optimize", "task.py"]) == expected
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("egg: ")
    assert len(err.splitlines()) == 1
    if isinstance(error, EggError):
        assert err == f"egg: {error}\n"


def test_a_fault_of_the_house_saves_its_traceback(
    fakes: Fakes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr(runs, "start", fail)
    assert status(["optimize", "task.py"]) == 3
    (saved,) = (tmp_path / "cache").iterdir()
    assert "ZeroDivisionError: a slip" in saved.read_text()
    err = capsys.readouterr().err
    assert str(saved) in err
    assert len(err.splitlines()) == 1


def test_analyze_prints_operators(fakes: Fakes, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["analyze", "task.py"]) == 0
    assert "aten.add.Tensor" in capsys.readouterr().out
    assert status(["analyze", "task.py", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["workloads"][0]["ops"][0]["flops"] == 32
    assert printed["device"]["cores"] == make.make_device().cores


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["--version"]) == 0
    assert capsys.readouterr().out.strip() == egg.__version__


@pytest.mark.parametrize("tokens", [["--help"], ["optimize", "--help"], ["--version"]])
def test_help_imports_neither_torch_nor_pydantic(tokens: list[str]) -> None:
    code = (
        "import sys; from egg.cli.app import status; status(sys.argv[1:]); "
        "sys.stderr.write(','.join(m for m in ('torch', 'pydantic', 'egg.schema') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, *tokens], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout


def test_help_takes_little_processor_time() -> None:
    code = (
        "import sys, time; from egg.cli.app import status; status(['--help']); "
        "sys.stderr.write(str(time.process_time()))"
    )
    least_s = min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr)
        for _ in range(3)
    )
    assert least_s < 0.3
