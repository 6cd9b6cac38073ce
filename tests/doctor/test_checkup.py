"""A check-up says of everything whether it is there, missing or unknown, what that costs and how to mend it."""

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from rich.console import Console

from egg.analysis.gpu import measured_apart
from egg.candidates.targets import Target
from egg.cli.app import status
from egg.doctor import checkup, graphics, isolation, selftest, speed, toolchain
from egg.errors import SandboxError
from egg.reports.checkup import checkup_data, checkup_table
from egg.schema.candidate import Candidate
from egg.schema.checkup import Checkup, Finding
from egg.schema.evaluation import Basis, Evaluation
from egg.testing import factories as make

Shape = list[tuple[str, str]]


def states(findings: list[Finding]) -> Shape:
    return [(f.name, f.state) for f in findings]


def test_a_package_and_a_compiler_are_found_or_missing(tmp_path: Path) -> None:
    assert toolchain.package("pytest", "", "").said == pytest.__version__
    missing = toolchain.package("no-such-package", "nothing runs", "pip install it", needed=True)
    assert (missing.state, missing.costs, missing.fix) == ("missing", "nothing runs", "pip install it")
    assert toolchain.compiler("c", "no-such-compiler", "", "").said == "no no-such-compiler on the path"
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert toolchain.compiler("c", str(broken), "", "").said.endswith("ended with 3")
    broken.write_text("#!/bin/sh\necho gcc 12.3.1\n")
    assert toolchain.compiler("c", str(broken), "", "").said == f"12.3.1, {broken}"
    assert {f.name for f in toolchain.toolchain()} >= {"python", "torch", "triton", "nvcc", "C++ compiler"}


@pytest.mark.parametrize(
    ("params", "root", "state"),
    [
        ("RmProfilingAdminOnly: 1\n", False, "missing"),
        ("RmProfilingAdminOnly: 1\n", True, "ok"),
        ("RmProfilingAdminOnly: 0\n", False, "ok"),
        ("other: 1\n", False, "unknown"),
        (None, False, "unknown"),
    ],
)
def test_the_permission_to_profile_is_read(params: str | None, root: bool, state: str, tmp_path: Path) -> None:
    if params is not None:
        (tmp_path / "params").write_text(params)
    assert graphics.counters(tmp_path, root).state == state


@pytest.mark.parametrize("module", ["x86_64 Kernel Module ", "Open Kernel Module for x86_64 "])
def test_the_driver_is_read_or_unknown(module: str, tmp_path: Path) -> None:
    assert graphics.driver(tmp_path).state == "unknown"
    (tmp_path / "version").write_text(f"NVRM version: NVIDIA UNIX {module} 570.86.15  Release Build  (builder)\n")
    assert graphics.driver(tmp_path).said == "570.86.15"


@pytest.mark.gpu
def test_a_gpu_is_measured() -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    assert [f.state for f in graphics.graphics()][:2] == ["ok", "ok"]
    assert [f.state for f in graphics.graphics_speed(measured_apart())] == ["ok"] * 6


def test_the_clock_is_steady_or_not() -> None:
    ticks = iter(float(i) for i in range(10_000))
    assert speed.clock_stability(lambda: next(ticks)).state == "ok"
    reads = iter(range(10_000))

    def shaky() -> float:
        at = next(reads)
        return at + (at % 2) * (at % 7)

    assert speed.clock_stability(shaky).state == "missing"


def passed(speedup: float, spread: float) -> Evaluation:
    return make.make_evaluation(speedup, spread, tier="attest")


@pytest.mark.parametrize(
    ("same", "slower", "expected"),
    [
        (passed(1.0, 0.005), passed(0.97, 0.005), ["ok", "ok", "ok"]),
        (passed(1.0, 0.005), passed(1.0, 0.005), ["ok", "ok", "missing"]),
        (passed(0.97, 0.005), passed(0.94, 0.005), ["ok", "missing", "ok"]),
        (passed(1.0, 0.1), passed(0.8, 0.1), ["missing", "unknown", "unknown"]),
        (passed(1.0, 0.005), passed(0.9, 0.1), ["ok", "unknown", "unknown"]),
    ],
)
def test_the_self_test_tells_a_slowdown_from_noise(same: Evaluation, slower: Evaluation, expected: list[str]) -> None:
    found = list(selftest.self_test(selftest.Tried(same, slower)))
    assert [f.state for f in found] == expected


def test_a_harness_that_fails_its_own_code_is_not_fit() -> None:
    found = tuple(selftest.self_test(selftest.Tried(make.make_failed_evaluation(), passed(0.97, 0.005))))
    assert states(list(found)) == [("same code against itself", "missing")]
    assert not Checkup(findings=found, versions={}, wall_s=1.0).fit


def judge_of(asked: list[tuple[str, str]], broken: str = "") -> selftest.Judge:
    """Returns a judge that notes the targets it was asked for with the inputs of their tasks."""

    def judge(task: Path, candidates: Sequence[Candidate], target: Target) -> list[Evaluation]:
        asked.append((target, task.read_text().partition("return [")[2].partition("]")[0]))
        if target == broken:
            raise SandboxError("no driver")
        layers = ("Landlock", f"of {target}")
        basis = Basis(policy="strict", isolation=layers)
        return [passed(1.0, 0.005).updated(basis=basis), passed(0.97, 0.005)]

    return judge


def test_where_there_is_a_gpu_the_harness_is_tried_there_too() -> None:
    asked: list[tuple[str, str]] = []
    found = list(checkup.tried(judge_of(asked), ("cpu", "cuda")))
    assert asked == [("cpu", "torch.randn(64, 256)"), ("cuda", "torch.randn(2048, 2048)")]
    tests = [f.name for f in found if f.group == "self-test"]
    assert len(tests) == 6
    assert tests[3:] == [f"{name}, GPU" for name in tests[:3]]
    assert [f.name for f in found if f.group == "isolation"] == ["Landlock", "of cpu", "of cuda"]


def test_a_gpu_that_nothing_can_be_verified_on_is_named() -> None:
    found = list(checkup.tried(judge_of([], broken="cuda"), ("cpu", "cuda")))
    named = {f.name: f for f in found}
    assert (named["harness, GPU"].said, named["noise floor"].state) == ("no driver", "ok")
    assert named["harness, GPU"].costs == "nothing can be verified on its GPU"
    assert not Checkup(findings=tuple(found), versions={}, wall_s=1.0).fit


def test_layers_are_listed_with_the_reason_for_a_missing_one() -> None:
    basis = Basis(policy="strict", isolation=("Landlock",), missing_isolation=("network: no user namespaces",))
    found = list(isolation.isolation(basis))
    assert states(found) == [("Landlock", "ok"), ("network", "missing")]
    assert found[1].said == "no user namespaces"
    assert states(list(isolation.isolation(None))) == [("layers", "unknown")]


def test_the_table_says_what_a_missing_thing_costs() -> None:
    lines = (
        Finding(
            group="toolchain", name="triton", state="missing", said="not installed", costs="no Triton", fix="get it"
        ),
        Finding(group="device", name="CPU", state="ok", said="a CPU"),
    )
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    console.print(checkup_table(Checkup(findings=lines, versions={}, wall_s=2.0)))
    text = console.file.getvalue()
    assert "not installed; no Triton; to mend it: get it" in text
    assert text.rstrip().endswith("Fit to make and measure kernels; looked at in 2.0 s")


@pytest.mark.slow
def test_this_machine_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EGG_CACHE_DIR", os.fspath(tmp_path))
    ended = status(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert ended == (0 if found["fit"] else 1)
    by_name = {f["name"]: f for f in found["findings"]}
    assert by_name["torch"]["state"] == "ok"
    assert by_name["noise floor"]["said"].endswith("against itself)")
    assert by_name["planted slowdown of 3 %"]["state"] in ("ok", "missing", "unknown")
    assert by_name["memory copy"]["said"].endswith("GB/s read and written")
    assert any(f["group"] == "isolation" for f in found["findings"])
    assert found["wall_s"] < 240
    assert checkup_data(Checkup.model_validate({k: found[k] for k in ("findings", "versions", "wall_s")})) == found
