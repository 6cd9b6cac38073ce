"""Who wrote what a call runs: compiled functions are timed, made to fail and made to lie."""

from __future__ import annotations

import pytest
from tests.evaluation.conftest import EvaluatorFor, candidate_of, model

from egg.schema.evaluation import Evaluation, KernelShare, Status
from egg.testing.factories import make_evaluation

CPP = '''
import tvm_ffi.cpp

SOURCE = r"""
#include <tvm/ffi/container/tensor.h>

static void twice(tvm::ffi::TensorView x, tvm::ffi::TensorView y) {
  const float* in = static_cast<const float*>(x.data_ptr());
  float* out = static_cast<float*>(y.data_ptr());
  for (long i = 0; i < x.numel(); ++i) out[i] = 2 * in[i];
}
void honest(tvm::ffi::TensorView x, tvm::ffi::TensorView y) { twice(x, y); }
void guarded(tvm::ffi::TensorView x, tvm::ffi::TensorView y) { twice(x, y); }
void decoy(tvm::ffi::TensorView x, tvm::ffi::TensorView y) { twice(x, y); }
void times_zero(tvm::ffi::TensorView x, tvm::ffi::TensorView y) { twice(x, y); }
void one_element(tvm::ffi::TensorView x, tvm::ffi::TensorView y) { twice(x, y); }
"""
NAMES = ["honest", "guarded", "decoy", "times_zero", "one_element"]
KERNELS = tvm_ffi.cpp.load_inline(name="kernels", cpp_sources=SOURCE, functions=NAMES)
'''
EACH = """
a, b, c, d, e = (part.contiguous() for part in x.split(60, 1))
outs = [torch.empty_like(a) for _ in range(4)] + [e * 2]
KERNELS.honest(a, outs[0])
try:
    KERNELS.guarded(b, outs[1])
except Exception:
    outs[1] = b * 2
KERNELS.decoy(c, outs[2])
outs[2] = c * 2
KERNELS.times_zero(d, outs[3])
outs[3] = d * 2 + 0 * outs[3]
outs[4][0, 0] = 0
KERNELS.one_element(e[0, :1], outs[4][0, :1])
return torch.cat(outs, 1)
"""
ODD = [
    "guarded may fail without a word: other code gives the result",
    "decoy runs, but the result does not come from it",
    "times_zero runs, but the result does not come from it",
    "one_element makes 0.0052 % of the result",
]


def test_a_compiled_function_is_tried(evaluator_for: EvaluatorFor) -> None:
    pytest.importorskip("tvm_ffi")
    seen = evaluator_for("double").evaluate(candidate_of(model(EACH, before=CPP), language="cpp"), "search", 120)
    assert seen.status is Status.PASSED, seen.failure
    assert [f for f in seen.findings if "in the text" not in f] == ODD
    assert any("fallback" in f for f in seen.findings)
    used = {k.name: k.used for k in seen.kernels if k.owner == "candidate"}
    assert used == {"honest": True, "guarded": True, "decoy": False, "times_zero": False, "one_element": True}


def test_code_that_is_compiled_and_left_alone_is_named(evaluator_for: EvaluatorFor) -> None:
    idle = "import ctypes\nLIBRARY = ctypes.CDLL(None)\n"
    seen = evaluator_for("double").evaluate(candidate_of(model("return x * 2", before=idle)), "search", 60)
    assert (seen.status, seen.authorship) == (Status.PASSED, "library")
    assert "it compiles native code, and no call of it was seen" in seen.findings


def test_operators_have_shares(evaluator_for: EvaluatorFor) -> None:
    seen = evaluator_for("square").evaluate(candidate_of(model("return (x @ y) + 0")), "search", 60)
    owners = {k.name: k.owner for k in seen.kernels}
    assert (owners["aten::matmul"], owners["aten::add"]) == ("library", "aten")
    assert sum(k.share_pct for k in seen.kernels) == pytest.approx(100, abs=1)
    assert seen.authorship == "library"


def share(owner: str, share_pct: float, used: bool | None = None) -> KernelShare:
    return KernelShare.model_validate({"name": owner, "owner": owner, "share_pct": share_pct, "calls": 1, "used": used})


@pytest.mark.parametrize(
    ("kernels", "label"),
    [
        ((), "unknown"),
        ((share("unknown", 100),), "unknown"),
        ((share("candidate", 60), share("unknown", 40)), "own"),
        ((share("candidate", 50), share("library", 50)), "mixed"),
        ((share("candidate", 5), share("aten", 95)), "library"),
        ((share("candidate", 90, used=False), share("aten", 10)), "library"),
    ],
)
def test_shares_give_a_label(kernels: tuple[KernelShare, ...], label: str) -> None:
    seen: Evaluation = make_evaluation().updated(kernels=kernels)
    assert seen.authorship == label
