"""Reports times that no clock can give."""

# /// fixture
# task = "double"
# expect = ["REJECTED"]
# variants = ["0", "-1", "1e-320", "float('inf')", "float('nan')", "'fast'"]
# ///
import gc

from torch import nn

VARIANT = ""


def forge(channel):
    honest = channel.send

    def send(self, message):
        result = message.get("result") or {}
        for key in result:
            if key.endswith("_ns"):
                value = eval(VARIANT)
                result[key] = [value] * len(result[key]) if isinstance(result[key], list) else value
        honest(self, message)

    channel.send = send


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for found in gc.get_objects():
            if type(found).__name__ == "Channel":
                forge(type(found))

    def forward(self, x):
        return x * 2
