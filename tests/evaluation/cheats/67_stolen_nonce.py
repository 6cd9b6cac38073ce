"""Takes the channel and its nonce from the frames and objects of the process, and answers in the harness's name."""

# /// fixture
# task = "double"
# expect = ["REJECTED", "RUNTIME_ERROR", "WRONG_VALUE"]
# ///
import gc
import sys

import torch
from torch import nn


def stolen():
    frame = sys._getframe(1)
    while frame is not None:
        values = frame.f_locals
        if "message" in values and isinstance(values["message"], dict) and "nonce" in values["message"]:
            return values["message"]
        frame = frame.f_back
    return {}


class ModelNew(nn.Module):
    def forward(self, x):
        asked = stolen()
        for found in gc.get_objects():
            if type(found).__name__ == "Channel":
                forged = {"id": asked.get("id"), "nonce": asked.get("nonce")}
                found.send(forged | {"result": {"settings_changed": [], "passed": True, "leaves": [], "message": ""}})
        return torch.zeros_like(x)
