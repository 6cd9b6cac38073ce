"""`egg verify` from the command line: exit status, JSON, a file, and a sentence for every kind of bad input."""

import json
from pathlib import Path

import pytest
from tests.cli.kernels import RIGHT, TASK

from egg.candidates.targets import target_of
from egg.cli.app import status
from egg.evaluation.workers.isolation import LAYERS, Isolation


def test_a_right_kernel_is_verified(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["verify", "right.py", "--task", "task.py", "--ladder", "eager", "--json", "--out", "seen.json"]
    assert status(command) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert printed.out == Path("seen.json").read_text()
    assert (document["verified"], document["attested"], document["status"]) == (True, True, "PASSED")
    assert document["rests_on"]["tier"] == "attest"
    assert len(document["rests_on"]["seeds"]) == len(document["trials"])
    assert document["baselines"]["eager"]["speedup_over_it"]["value"] == document["speedup"]["value"]


def test_a_machine_that_cannot_isolate_attests_only_what_is_trusted(
    kernels: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = Isolation.of({layer: "" if layer != "file allow-list" else "not built in" for layer in LAYERS})
    monkeypatch.setattr("egg.evaluation.workers.local.Isolation.of", lambda reasons: weak)
    command = ["verify", "right.py", "--task", "task.py", "--ladder", "eager", "--json"]
    assert status(command) == 3
    assert "--trusted" in capsys.readouterr().err
    assert status([*command, "--trusted"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["attested"]
    assert document["rests_on"]["missing_isolation"] == ["file allow-list: not built in"]


def test_a_candidate_of_a_barred_task_is_shown_and_not_verified(
    kernels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("task.py").write_text(TASK.replace("torch.softmax(x, dim=-1)", "torch.relu(x) * 0"))
    Path("zeros.py").write_text(RIGHT.replace("return e / e.sum(-1, keepdim=True)", "return torch.zeros_like(x)"))
    command = ["verify", "zeros.py", "--task", "task.py"]
    assert status(command) == 2
    assert "`egg verify --barred-ok` runs a candidate all the same" in capsys.readouterr().err
    assert status([*command, "--barred-ok", "--tier", "search", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["verified"], document["attested"], document["status"]) == (False, False, "PASSED")
    assert "the output is always 0" in document["barred"]
    assert document["not_claimed"] == f"barred: {document['barred']}"


def test_what_a_candidate_claims_of_itself_counts_for_nothing(
    kernels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["verify", "liar.py", "--task", "task.py"]) == 1
    out = capsys.readouterr().out
    assert "WRONG_VALUE" in out
    assert "12.3" not in out
    assert "speedup" not in out
    assert not Path("result.json").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["none.py", "--task", "task.py"], "none.py is not a file"),
        (["right.py", "--task", "none.py"], "none.py"),
        (["right.py", "--task", "task.py", "--entry", "Fast"], "right.py defines no Fast; it defines ModelNew"),
        (["task.py", "--task", "task.py"], "task.py defines no ModelNew; it defines Model"),
        (["task.py", "--task", "task.py", "--entry", "Model"], "task.py is the task itself"),
        (["right.py", "--task", "task.py", "--ladder", "jax"], "--ladder 'jax': choose from eager, torch.compile"),
        (["right.py", "--task", "task.py", "--out", "no/where.json"], "there is no folder no"),
        (["right.py", "--task", "task.py", "--out", "."], "is a folder: name a file"),
        (["right.py", "--task", "task.py", "--target", "tpu"], "tpu"),
        (["right.py"], "--task"),
    ],
)
def test_bad_input_gets_a_sentence(
    command: list[str], said: str, kernels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["verify", *command]) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert (out, "Traceback" in err) == ("", False)


def test_a_kernel_for_another_machine_is_no_failure_of_its_own(
    kernels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("gpu.py").write_text(RIGHT.replace("torch.exp(", "torch.exp(1e-9 * torch.ones(1, device='cuda') + "))
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert status(["verify", "gpu.py", "--task", "task.py"]) == 2
    assert (
        "gpu.py needs a CUDA device (line 7 names the device 'cuda') and this machine has none"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("command", [["verify", "right.py"], ["bench", "right.py"], ["audit"]])
def test_a_target_that_is_not_here_is_named_with_the_fix(
    command: list[str], kernels: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    task = ["task.py"] if command == ["audit"] else ["--task", "task.py"]
    assert status([*command, *task, "--target", "cuda"]) == 2
    assert (
        "is built without CUDA: install one that is built for it, or choose the target cpu" in capsys.readouterr().err
    )
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert status([*command, *task, "--target", "cuda"]) == 2
    assert "PyTorch finds no CUDA device: use a machine with a GPU" in capsys.readouterr().err


def test_the_built_in_author_writes_for_the_cpu(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["optimize", "task.py", "--target", "cuda"]) == 2
    assert "the author expert writes kernels for the CPU only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "target"), [("x = 1", "cuda"), ("import triton", "cuda"), ("load_inline(cpp_sources='')", "cpu")]
)
def test_unless_named_the_gpu_is_taken_for_what_may_run_on_it(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert target_of("auto", source) == target
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert target_of("auto", source) == "cpu"
