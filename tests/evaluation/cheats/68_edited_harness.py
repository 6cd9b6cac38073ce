"""Opens the harness's own files, or those of PyTorch, for writing; it changes nothing, but it could."""

# /// fixture
# task = "double"
# expect = ["RUNTIME_ERROR"]
# says = "Error"
# variants = ["harness", "torch", "new file"]
# guarantee = "files"
# ///
from pathlib import Path

import torch
from torch import nn

import egg

VARIANT = ""
HARNESS = Path(egg.__file__).parent / "evaluation" / "evaluator.py"

if VARIANT == "new file":
    planted = HARNESS.with_name("planted_by_a_fixture.py")
    planted.touch()
    planted.unlink()
else:
    paths = {"harness": HARNESS, "torch": Path(torch.__file__)}
    with paths[VARIANT].open("r+b"):
        pass


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2
