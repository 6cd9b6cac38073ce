"""Returns zeros and writes a good verdict to every descriptor and to files where one might be read."""

# /// fixture
# task = "double"
# expect = ["WRONG_VALUE", "REJECTED"]
# variants = ["descriptors", "files"]
# ///
import json
import os
from pathlib import Path

import torch
from torch import nn

VARIANT = ""
VERDICT = {"status": "PASSED", "correct": True, "speedup": 100.0, "result": {}, "ready": True}

if VARIANT == "descriptors":
    for descriptor in range(1, 256):
        try:
            os.write(descriptor, json.dumps(VERDICT).encode() + b"\n")
        except OSError:
            continue
else:
    for folder in (Path.cwd(), Path.home(), Path(os.environ.get("TMPDIR", "."))):
        for name in ("result.json", "results.json", "eval_result.json", "verdict.json"):
            (folder / name).write_text(json.dumps(VERDICT))


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
