"""A kernel in CUDA C++, four elements a thread where they are aligned."""

# /// fixture
# task = "double"
# label = "own"
# allowance_s = 240
# ///
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void twice(const float4* x, float4* y, long fours, const float* rest, float* out, long n) {
    long i = blockIdx.x * (long) blockDim.x + threadIdx.x;
    if (i < fours) {
        float4 v = x[i];
        y[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
    }
    long at = 4 * fours + i;
    if (at < n) out[at] = 2 * rest[at];
}

torch::Tensor run(torch::Tensor given) {
    auto x = given.contiguous();
    auto y = torch::empty_like(x);
    const float* from = x.data_ptr<float>();
    float* to = y.data_ptr<float>();
    long n = x.numel(), fours = reinterpret_cast<size_t>(from) % 16 ? 0 : n / 4, threads = fours ? fours + 4 : n;
    if (n == 0) return y;
    twice<<<(threads + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<const float4*>(from), reinterpret_cast<float4*>(to), fours, from, to, n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""
built = load_inline("twice_four", "torch::Tensor run(torch::Tensor x);", cuda_sources=SOURCE, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return built.run(x)
