"""Two-pass product. Except for the order of the sum it is the plain one; it does not sleep, and time is not kept.

The words `except`, `two-pass`, `sleep`, `fallback`, `torch.allclose` and `time.time = x` stand in a text only.
"""

# /// fixture
# task = "matmul"
# ///
from torch import nn

NOTE = "try: kernel() except: return torch.matmul(a, b)  # not code; eval('1'), os.system, gc.get_objects()"


class ModelNew(nn.Module):
    """Never falls back, never uses subprocess, threading or ctypes."""

    def forward(self, a, b):
        half = a.shape[1] // 2  # except for the remainder, both passes are equal; no stream, no graph
        return a[:, :half] @ b[:half] + a[:, half:] @ b[half:]
