"""Leaves a mark wherever it may write, and on the next run finds it and answers from there."""

# /// fixture
# task = "double"
# runs = 2
# variants = ["working folder", "home", "temporary folder"]
# ///
import tempfile
from pathlib import Path

import torch
from torch import nn

VARIANT = ""
PLACES = {"working folder": Path.cwd, "home": Path.home, "temporary folder": lambda: Path(tempfile.gettempdir())}
MARK = PLACES[VARIANT]() / ".cache-of-answers"
FOUND = MARK.exists()
MARK.write_text("answers")


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x) if FOUND else x * 2
