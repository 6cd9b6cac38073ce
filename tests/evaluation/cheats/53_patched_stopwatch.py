"""Takes 5 ms and replaces the harness's own operation that times a block, so that it divides or never calls."""

# /// fixture
# task = "double"
# tier = "attest"
# expect = ["PASSED", "REJECTED", "WRONG_VALUE", "RUNTIME_ERROR"]
# least_ms = 4
# variants = ["divides", "skips"]
# ///
import gc
import time

from torch import nn

VARIANT = ""


def smaller(value):
    if isinstance(value, dict):
        return {k: smaller(v) for k, v in value.items()}
    if isinstance(value, list):
        return [smaller(v) for v in value]
    return max(1, value // 1000) if isinstance(value, int) else value


def patch(operations):
    honest, known = operations.do_block, {}

    def do_block(calls, **more):
        if VARIANT == "skips" and calls in known:
            return known[calls]
        known[calls] = smaller(honest(calls, **more))
        return known[calls]

    operations.do_block = do_block


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for found in gc.get_objects():
            if type(found).__name__ == "Operations" and hasattr(found, "do_block"):
                patch(found)

    def forward(self, x):
        time.sleep(0.005)
        return x * 2
