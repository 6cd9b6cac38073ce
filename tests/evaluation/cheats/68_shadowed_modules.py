"""Leaves modules of well-known names where a later interpreter may find them first, and returns zeros."""

# /// fixture
# task = "double"
# expect = ["WRONG_VALUE", "RUNTIME_ERROR"]
# runs = 2
# ///
import site
from pathlib import Path

import torch
from torch import nn

for folder in (Path.cwd(), Path.home(), Path(site.getusersitepackages())):
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("numpy", "statistics", "sitecustomize", "usercustomize", "torch"):
        (folder / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    (folder / "shadow.pth").write_text("import sys; sys.exit('shadowed')\n")


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
