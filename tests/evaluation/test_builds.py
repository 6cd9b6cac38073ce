"""Candidates that compile: C++ by apache-tvm-ffi passes and is cached; what a compiler refuses is told apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from egg.evaluation.evaluator import LocalEvaluator
from egg.evaluation.workers.local import LocalWorkplace
from egg.schema.evaluation import Status

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
