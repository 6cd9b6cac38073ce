"""A recorded profile is classified by the names of its kernels."""

from __future__ import annotations

import pytest

from egg.evaluation.integrity.ownership import kernel_shares, own_kernel_names, owner_of_kernel, owner_of_operator

SOURCE = '''
import triton
import triton.language as tl

@triton.autotune(configs=[], key=["n"])
@triton.jit
def scale_rows(x, n, BLOCK: tl.constexpr):
    pass

def helper():
    pass

CUDA = """
// __global__ void not_this(int)
template <typename T>
__global__ void __launch_bounds__(256) fused_bias(float* x, int n) {}
"""
'''


def test_the_kernels_of_a_file_are_known_by_name() -> None:
    assert own_kernel_names(SOURCE) == {"scale_rows", "fused_bias"}


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("scale_rows", "candidate"),
        ("void fused_bias<float>(float*, int)", "candidate"),
        ("void (anonymous namespace)::fused_bias<float, 4>(float*, int)", "candidate"),
        ("ampere_sgemm_128x64_tn", "library"),
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32", "library"),
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNT", "library"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(cutlass::Params)", "library"),
        ("void cudnn::bn_fw_tr_1C11_singleread<float, 512>(int)", "library"),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>(Flash_fwd_params)", "library"),
        ("triton_poi_fused_add_mul_0", "library"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)", "aten"),
        ("void at::native::(anonymous namespace)::softmax_warp_forward<float, float, float, 8>(float*)", "aten"),
        ("Memcpy DtoD (Device -> Device)", "aten"),
        ("Memset (Device)", "aten"),
        ("somebody_elses_kernel", "unknown"),
    ],
)
def test_a_kernel_has_an_owner(name: str, owner: str) -> None:
    assert owner_of_kernel(name, own_kernel_names(SOURCE)) == owner


@pytest.mark.parametrize(
    ("name", "owner"),
    [("aten::addmm", "library"), ("aten::add_", "aten"), ("mine::fused", "candidate"), ("mkldnn::_linear", "library")],
)
def test_an_operator_has_an_owner(name: str, owner: str) -> None:
    assert owner_of_operator(name) == owner


def test_a_recorded_profile_gives_shares() -> None:
    events = [
        {"name": "scale_rows", "device_us": 30.0},
        {"name": "ampere_sgemm_128x64_tn", "device_us": 60.0},
        {"name": "scale_rows", "device_us": 10.0},
    ]
    assert kernel_shares(events, {"scale_rows"}, 2) == [
        {"name": "ampere_sgemm_128x64_tn", "owner": "library", "share_pct": 60.0, "calls": 0.5},
        {"name": "scale_rows", "owner": "candidate", "share_pct": 40.0, "calls": 1.0},
    ]
    assert kernel_shares([], set(), 1) == []
