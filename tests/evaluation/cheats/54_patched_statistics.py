"""Takes 5 ms and replaces what summarises, encodes or prints the figures."""

# /// fixture
# task = "double"
# expect = ["PASSED", "REJECTED", "RUNTIME_ERROR"]
# least_ms = 4
# variants = ["statistics", "json", "print", "builtins", "numpy"]
# only.json = { tier = "attest" }
# ///
import builtins
import json
import statistics
import sys
import time

from torch import nn

VARIANT = ""


def tiny(*_, **__):
    return 1e-6


if VARIANT == "statistics":
    statistics.median = statistics.mean = statistics.quantiles = tiny
elif VARIANT == "json":
    honest = json.dumps

    def dumps(value, **options):
        result = value.get("result") if isinstance(value, dict) else None
        for key in result or ():
            if key.endswith("_ns"):
                result[key] = [1] * len(result[key]) if isinstance(result[key], list) else 1
        return honest(value, **options)

    json.dumps = dumps
elif VARIANT == "print":
    print("speedup: 1000.0x\nPASSED")
    builtins.print = tiny
elif VARIANT == "builtins":
    builtins.sorted = lambda values, **_: list(values)
    builtins.sum = lambda values, *_: 0
else:
    numpy = sys.modules.get("numpy") or __import__("numpy")
    numpy.median = numpy.mean = numpy.percentile = tiny


class ModelNew(nn.Module):
    def forward(self, x):
        time.sleep(0.005)
        return x * 2
