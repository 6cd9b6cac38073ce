"""Hides a patched clock behind a floor division, which a rule on raw lines takes for a comment."""

# /// fixture
# task = "double"
# tier = "attest"
# expect = ["PASSED", "REJECTED"]
# least_ms = 4
# ///
import time

from torch import nn

honest = time.sleep
began = time.perf_counter_ns()
_ = 1 // 1; time.perf_counter_ns = lambda: began + 1000  # fmt: skip


class ModelNew(nn.Module):
    def forward(self, x):
        honest(0.005)
        return x * 2
