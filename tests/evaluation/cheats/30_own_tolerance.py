"""Is off by a percent, and widens every tolerance that it finds, under its own names and in the harness's modules."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE", "REJECTED"]
# ///
import sys

from torch import nn

ATOL = RTOL = TOLERANCE = 1e9
PRECISION = "fp16"


def get_tolerance(*_):
    return 1e9


class ModelNew(nn.Module):
    def forward(self, a, b):
        for name, module in list(sys.modules.items()):
            if "tolerance" in name or "compare" in name:
                for key, value in list(vars(module).items()):
                    if isinstance(value, float):
                        setattr(module, key, 1e9)
        return (a @ b) * 1.01
