"""Takes 5 ms and replaces the function that measures it, or makes it answer without a call."""

# /// fixture
# task = "double"
# tier = "attest"
# expect = ["PASSED", "REJECTED", "WRONG_VALUE", "RUNTIME_ERROR"]
# least_ms = 4
# variants = ["divides", "skips"]
# waits_for = "timing: the caller's own clock"
# ///
import sys
import time

from torch import nn

VARIANT = ""


def skipping(stopwatch):
    return 1000


def dividing(honest):
    return lambda stopwatch: honest(stopwatch) // 100


class ModelNew(nn.Module):
    def forward(self, x):
        for module in list(sys.modules.values()):
            stopwatch = getattr(module, "Stopwatch", None)
            if stopwatch is not None and not hasattr(stopwatch, "patched"):
                stopwatch.patched = True
                stopwatch._one_call = skipping if VARIANT == "skips" else dividing(stopwatch._one_call)
        time.sleep(0.005)
        return x * 2
