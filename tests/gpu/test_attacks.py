"""Cheats that need a real GPU, and honest kernels of each kind."""

from __future__ import annotations

import pytest

from egg.schema.evaluation import Status

from .conftest import Judge, module

FAIL = (Status.REJECTED, Status.WRONG_VALUE, Status.RUNTIME_ERROR)
SLOW = "torch.cuda._sleep(20_000_000)\n"
SIDE_STREAM = f"""
with torch.cuda.stream(self.side):
    {SLOW}    out = 2 * x
return out"""
GRAPH = """
if self.graph is None:
    self.static = x.clone()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        self.out = 2 * self.static
    torch.cuda.synchronize()
    self.graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(self.graph):
        self.out = 2 * self.static
{copy}
self.graph.replay()
return self.out.clone()"""
CUDA = r'''
from torch.utils.cpp_extension import load_inline
source = """
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
__global__ void twice(const float* x, float* y, long n) {
    extern __shared__ float unused[];
    long i = blockIdx.x * (long) blockDim.x + threadIdx.x;
    if (i < n) y[i + SHIFT] = 2 * x[i];
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    long n = x.numel();
    twice<<<(n + 255) / 256, 256, SHARED>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    CHECK
    return y;
}
"""
source = source.replace("SHIFT", "@shift@").replace("SHARED", "@shared@").replace("CHECK", "@check@")
ext = load_inline("twice_ext", "torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=["run"])
'''
TRITON = """
import triton
import triton.language as tl

@triton.jit
def twice(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
TRITON_FORWARD = """
y = torch.empty_like(x)
twice[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
return y"""


def cuda(shift: str = "0", shared: str = "0", check: str = "C10_CUDA_KERNEL_LAUNCH_CHECK();") -> str:
    before = CUDA.replace("@shift@", shift).replace("@shared@", shared).replace("@check@", check)
    return module("return ext.run(x)", before=before)


def test_honest_torch_passes_in_both_tiers(judge: Judge) -> None:
    for tier in ("search", "attest"):
        seen = judge(module("return x + x"), tier)
        assert seen.status is Status.PASSED, seen.failure
        assert seen.basis is not None
        assert seen.basis.timing_method == {"search": "event", "attest": "caller"}[tier]
        assert seen.environment["device"] == "cuda"
        assert seen.timings[0].speedup == pytest.approx(1.0, rel=0.15)


def test_a_triton_kernel_passes(judge: Judge) -> None:
    pytest.importorskip("triton")
    seen = judge(module(TRITON_FORWARD, before=TRITON), "attest")
    assert seen.status is Status.PASSED, seen.failure


@pytest.mark.slow
def test_a_cuda_kernel_passes_and_one_that_never_ran_does_not(judge: Judge) -> None:
    seen = judge(cuda())
    assert seen.status is Status.PASSED, seen.failure
    assert judge(cuda(shared="1 << 20", check="")).status in FAIL


@pytest.mark.slow
def test_an_illegal_access_ends_one_candidate_alone(judge: Judge) -> None:
    broken = judge(cuda(shift="(1L << 40)"))
    assert broken.status is Status.RUNTIME_ERROR, broken.failure
    seen = judge(module("return x + x"))
    assert seen.status is Status.PASSED, seen.failure


def test_work_on_another_stream_is_no_gain(judge: Judge) -> None:
    seen = judge(module(SIDE_STREAM, "self.side = torch.cuda.Stream()"))
    if seen.status is Status.PASSED:
        assert seen.timings[0].candidate_ms > 5
    else:
        assert seen.status in FAIL


def test_a_late_write_is_waited_for_or_rejected(judge: Judge) -> None:
    late = f"out = torch.empty_like(x)\nwith torch.cuda.stream(self.side):\n    {SLOW}    out.copy_(2 * x)\nreturn out"
    seen = judge(module(late, "self.side = torch.cuda.Stream()"), "attest")
    if seen.status is Status.PASSED:
        assert seen.timings[0].candidate_ms > 5
    else:
        assert seen.status in FAIL


def test_stale_memory_is_no_answer(judge: Judge) -> None:
    assert judge(module("return torch.empty_like(x)")).status is Status.WRONG_VALUE


def test_a_graph_needs_its_input_copied(judge: Judge) -> None:
    init = "self.graph = None"
    assert judge(module(GRAPH.format(copy="pass"), init)).status in FAIL
    honest = judge(module(GRAPH.format(copy="self.static.copy_(x)"), init))
    assert honest.status is Status.PASSED, honest.failure


def test_an_output_on_the_host_is_rejected(judge: Judge) -> None:
    assert judge(module("return (2 * x).cpu()")).status is Status.REJECTED
