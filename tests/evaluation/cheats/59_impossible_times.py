"""Reports times that no clock can give."""

# /// fixture
# task = "double"
# expect = ["REJECTED"]
# variants = ["0", "-1", "1e-320", "float('inf')", "float('nan')", "'fast'"]
# only."float('inf')" = { waits_for = "timing: times that are no numbers" }
# only."float('nan')" = { waits_for = "timing: times that are no numbers" }
# only."'fast'" = { waits_for = "timing: times that are no numbers" }
# ///
import sys

from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def forward(self, x):
        for module in list(sys.modules.values()):
            if (stopwatch := getattr(module, "Stopwatch", None)) is not None:
                stopwatch.block = lambda self, calls: ([eval(VARIANT)] * calls, 1)
        return x * 2
