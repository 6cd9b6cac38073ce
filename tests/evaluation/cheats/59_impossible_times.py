"""Reports times that no clock can give."""

# /// fixture
# task = "double"
# expect = ["REJECTED"]
# variants = ["0", "-1", "1e-320", "float('inf')", "float('nan')", "'fast'"]
# ///
import json

from torch import nn

VARIANT = ""
honest = json.dumps


def dumps(value, **options):
    result = value.get("result") if isinstance(value, dict) else None
    for key in result or ():
        if key.endswith("_ns") and isinstance(result[key], list):
            result[key] = [eval(VARIANT)] * len(result[key])
    return honest(value, **options)


json.dumps = dumps


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2
