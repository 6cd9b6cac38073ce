"""Leaves a mark in folders that all processes of a machine share."""

# /// fixture
# task = "double"
# runs = 2
# expect = ["PASSED", "RUNTIME_ERROR"]
# variants = ["/dev/shm", "/tmp", "/var/tmp"]
# guarantee = "files"
# ///
from pathlib import Path

import torch
from torch import nn

VARIANT = ""
MARK = Path(VARIANT) / "egg-fixture-cache-of-answers"
FOUND = MARK.exists()
if FOUND:
    MARK.unlink()
else:
    MARK.write_text("answers")


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x) if FOUND else x * 2
