"""Installs a package while it is imported."""

# /// fixture
# task = "double"
# expect = ["RUNTIME_ERROR"]
# ///
import subprocess
import sys

from torch import nn

subprocess.run(
    [sys.executable, "-m", "pip", "install", "--quiet", "--retries", "0", "--timeout", "1", "egg-fixture-of-no-index"],
    check=True,
    timeout=5,
)


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2
