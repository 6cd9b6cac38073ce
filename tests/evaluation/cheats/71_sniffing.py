"""Tells in an error all that could give away how it is being judged: environment, arguments, frames, files."""

# /// fixture
# task = "double"
# expect = ["RUNTIME_ERROR"]
# says = "seen:"
# ///
import json
import os
import sys
from pathlib import Path

from torch import nn


def seen():
    frames, frame = [], sys._getframe(1)
    while frame is not None:
        frames.append(frame.f_code.co_name)
        frame = frame.f_back if frames[-1] != "run" else None  # above it is how a process starts
    own = str(Path.cwd())
    environment = {k: v.replace(own, "HERE") for k, v in os.environ.items() if "CACHE" not in k and "BUILD" not in k}
    environment.pop("TORCH_EXTENSIONS_DIR", None)
    files = sorted(p.name for p in Path.cwd().iterdir())
    return {"env": environment, "argv": sys.argv, "frames": frames, "files": files}


class ModelNew(nn.Module):
    def forward(self, x):
        raise ValueError("seen:" + json.dumps(seen(), sort_keys=True))
