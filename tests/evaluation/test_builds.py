"""Candidates that compile: C++ by apache-tvm-ffi passes and is cached; what a compiler refuses is told apart."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from egg.evaluation.evaluator import House, LocalEvaluator
from egg.evaluation.tiers import Limits
from egg.evaluation.workers.faults import DETAIL_CHARS
from egg.evaluation.workers.local import LocalWorkplace
from egg.evaluation.workers.workplace import Post, Worker
from egg.schema.evaluation import Evaluation, Status
from egg.schema.run import Config

from .conftest import Judge, MakeTask, candidate_of, model

CPP = '''
import tvm_ffi.cpp

SOURCE = r"""
#include <tvm/ffi/container/tensor.h>

void run(tvm::ffi::TensorView x, tvm::ffi::TensorView y) {{
  const float* in = static_cast<const float*>(x.data_ptr());
  float* out = static_cast<float*>(y.data_ptr());
  const long n = x.numel();
  #pragma omp parallel for simd
  for (long i = 0; i < n; ++i) out[i] = {expression};
}}
"""

def build():
    flags = ["-O3", "-march=native", "-fopenmp"]
    return tvm_ffi.cpp.load_inline(
        name="kernel", cpp_sources=SOURCE, functions=["run"], extra_cflags=flags, extra_ldflags=["-fopenmp"]
    )
'''
FORWARD = "y = torch.empty_like(x)\nself.kernel.run(x, y)\nreturn y"


def cpp_model(expression: str) -> str:
    return model(FORWARD, "self.kernel = build()", CPP.format(expression=expression))


def test_a_cpp_candidate_builds_passes_and_is_cached(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    pytest.importorskip("tvm_ffi")
    evaluator = make_evaluator(make_task("return x * 2 + 1", "[torch.randn(64, 300)]"))
    candidate = candidate_of(cpp_model("2 * in[i] + 1"), language="cpp")
    first = evaluator.evaluate(candidate, "search", 120)
    assert first.status is Status.PASSED, first.failure
    assert first.profile["aten_calls"] == 0
    again = evaluator.evaluate(candidate, "search", 120)
    assert again.timings[0].setup_ms < first.timings[0].setup_ms


def test_a_wrong_cpp_candidate_is_wrong(make_task: MakeTask, judge: Judge) -> None:
    pytest.importorskip("tvm_ffi")
    seen = judge(make_task("return x * 2 + 1", "[torch.randn(64, 300)]"), cpp_model("2 * in[i] + 1.0001f"))
    assert seen.status is Status.WRONG_VALUE, seen.failure


def test_what_a_compiler_refuses_is_a_compile_error(make_task: MakeTask, judge: Judge) -> None:
    pytest.importorskip("tvm_ffi")
    seen = judge(make_task("return x * 2 + 1", "[torch.randn(64, 300)]"), cpp_model("no_such_name"))
    assert seen.status is Status.COMPILE_ERROR
    assert seen.failure is not None
    assert seen.failure.phase == "construct"
    assert "no_such_name" in seen.failure.detail


def test_a_compiled_baseline_that_cannot_build_is_data(
    make_task: MakeTask,
    make_evaluator: Callable[..., LocalEvaluator],
    workplace: LocalWorkplace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CXX", "/no/such/compiler")
    rung = make_evaluator(make_task("return x * 2", "[torch.randn(16, 300)]")).baseline("torch.compile")
    assert not rung.available
    assert rung.median_ms == {}
    assert "Compiler" in rung.reason


@pytest.mark.slow
def test_a_compiled_baseline_is_held_against_eager(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    rung = make_evaluator(make_task("return (x * 2 + 1).sin()", "[torch.randn(64, 300)]")).baseline("torch.compile")
    assert rung.available, rung.reason
    assert rung.setup_s > 0
    assert rung.low is not None
    assert rung.speedup_over_eager is not None
    assert rung.low <= rung.speedup_over_eager


BATON = """
import os, pathlib
from torch.utils.file_baton import FileBaton
folder = pathlib.Path(os.environ["TORCH_EXTENSIONS_DIR"], "kernel")
folder.mkdir(parents=True, exist_ok=True)
baton = FileBaton(str(folder / "lock"))
if baton.try_acquire():
    baton.release()
else:
    baton.wait()
"""


def test_a_lock_that_a_killed_run_left_keeps_nobody_waiting(
    make_task: MakeTask, workplace: LocalWorkplace, tmp_path: Path
) -> None:
    """BR-28: PyTorch's own lock is a file, which stays where the process that made it was killed."""
    task, candidate = (
        make_task("return x * 2", "[torch.randn(16, 300)]"),
        candidate_of(model("return x * 2", "", BATON)),
    )
    house = House(limits=Limits(deadline_s={**Limits().deadline_s, "import": 5.0}), lock_path=tmp_path / "lock")

    def run() -> LocalEvaluator:
        return LocalEvaluator(task, Config(threads=1), tmp_path / "work", (), house, workplace)

    killed = run()._crew.call_candidate(candidate.id, fresh=False)  # pyright: ignore[reportPrivateUsage]
    killed.worker.end()
    lock = killed.builds / "torch-extensions" / "kernel" / "lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    resumed = run()
    seen = resumed.evaluate(candidate, "search", 60)
    resumed.close()
    assert seen.status is Status.PASSED, seen.failure
    assert not lock.exists()


CUDA = """
import tvm_ffi.cpp
tvm_ffi.cpp.load_inline(name="kernel", cuda_sources="__global__ void k() {}", functions=[])
"""
NVCC = """#!/bin/sh
echo "$@" >> {log}
echo "nvcc fatal   : Unsupported gpu architecture 'compute_120a'" >&2
exit 1
"""


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def judged_with(make: Callable[..., LocalEvaluator], make_task: MakeTask, source: str, tools: Path) -> Evaluation:
    """Returns what is seen of a candidate that may use the tools in a folder."""
    evaluator = make(make_task("return x * 2 + 1", "[torch.randn(64, 300)]"), Limits(readable=(tools,)))
    return evaluator.evaluate(candidate_of(source), "search", 60)


def test_an_architecture_that_the_compiler_does_not_know_is_told_with_a_hint(
    make_task: MakeTask,
    make_evaluator: Callable[..., LocalEvaluator],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """BR-29."""
    pytest.importorskip("tvm_ffi")
    tools = tmp_path / "cuda"
    script(tools / "bin" / "nvcc", NVCC.format(log="arguments"))
    monkeypatch.setenv("CUDA_HOME", str(tools))
    asked = 'import os\nos.environ["TVM_FFI_CUDA_ARCH_LIST"] = "12.0a"\n'
    seen = judged_with(make_evaluator, make_task, model("return x * 2 + 1", before=asked + CUDA), tools)
    assert seen.status is Status.COMPILE_ERROR, seen.failure
    assert seen.failure is not None
    assert "Unsupported gpu architecture 'compute_120a' (the compiler does not know" in seen.failure.message


@pytest.mark.parametrize(
    "raised", ["RuntimeError('invalid block size 33')", "RuntimeError('lock')", "FileNotFoundError(2, 'No such file')"]
)
def test_what_sounds_like_a_fault_of_the_machine_is_tried_once(
    make_task: MakeTask,
    judge: Judge,
    workplace: LocalWorkplace,
    monkeypatch: pytest.MonkeyPatch,
    raised: str,
) -> None:
    """BR-31."""
    started = list[str]()
    start = workplace.start

    def noted(post: Post) -> Worker:
        started.append(post.role)
        return start(post)

    monkeypatch.setattr(workplace, "start", noted)
    seen = judge(make_task("return x * 2", "[torch.randn(16, 300)]"), model(f"raise {raised}"))
    assert seen.status is Status.RUNTIME_ERROR
    assert started.count("candidate") == 1


CHATTY = """#!/bin/sh
yes "kernel.cpp:1:1: warning: this line is one of many" | head -c {count} >&2
{then}
"""


@pytest.mark.parametrize(
    ("count", "then", "status"),
    [
        (200_000, 'exec c++ "$@"', Status.PASSED),
        (
            20_000_000,
            "echo \"kernel.cpp:2:2: error: 'no_such_name' was not declared\" >&2\nexit 1",
            Status.COMPILE_ERROR,
        ),
    ],
)
def test_a_compiler_that_prints_without_end_is_heard_out_and_cut(
    make_task: MakeTask,
    make_evaluator: Callable[..., LocalEvaluator],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    count: int,
    then: str,
    status: Status,
) -> None:
    """BR-32."""
    pytest.importorskip("tvm_ffi")
    compiler = script(tmp_path / "tools" / "c++", CHATTY.format(count=count, then=then))
    monkeypatch.setenv("CXX", str(compiler))
    seen = judged_with(make_evaluator, make_task, cpp_model("2 * in[i] + 1"), compiler.parent)
    assert seen.status is status, seen.failure
    if seen.failure is not None:
        assert "error: 'no_such_name' was not declared" in seen.failure.message
        assert len(seen.failure.detail) <= DETAIL_CHARS
        assert "characters cut" in seen.failure.detail
