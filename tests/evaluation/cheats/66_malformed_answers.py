"""Sends answers that are no answers: empty, of other types, or with other names, to confuse the one that reads them."""

# /// fixture
# task = "double"
# expect = ["REJECTED", "RUNTIME_ERROR", "WRONG_VALUE"]
# variants = ["empty", "text", "null", "list", "renamed", "deep", "nested", "bottomless"]
# ///
import gc

from torch import nn

VARIANT = ""


def spoilt(value):
    if VARIANT == "empty":
        return {}
    if VARIANT == "renamed":
        return {f"_{key}": item for key, item in value.items()}
    if VARIANT in ("nested", "bottomless"):
        return {key: nested(300) for key in value}
    other = {"text": "PASSED", "null": None, "list": [[]], "deep": {"output": {"list": [{"dict": [[]]}]}}}[VARIANT]
    return dict.fromkeys(value, other)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def forge(channel):
    honest = channel.send

    def send(self, message):
        result = spoilt(message.get("result") or {})
        if VARIANT == "bottomless" and result:
            body = b'{"id": 1, "result": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
            self._end.sendall(len(body).to_bytes(4, "little") + body)
        honest(self, message | {"result": result})

    channel.send = send


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for found in gc.get_objects():
            if type(found).__name__ == "Channel" and not hasattr(type(found), "forged"):
                type(found).forged = True
                forge(type(found))

    def forward(self, x):
        return x * 2
