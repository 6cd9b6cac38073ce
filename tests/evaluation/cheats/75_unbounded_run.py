"""Never comes back, in any phase."""

# /// fixture
# task = "double"
# expect = ["TIMEOUT"]
# allowance_s = 1.0
# variants = ["import", "constructor", "forward", "destructor"]
# ///
import signal
import time

from torch import nn

VARIANT = ""
signal.signal(signal.SIGTERM, signal.SIG_IGN)


def hang(where):
    if where == VARIANT:
        time.sleep(600)


class Slow:
    def __del__(self):
        hang("destructor")


hang("import")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        hang("constructor")

    def forward(self, x):
        hang("forward")
        Slow()
        return x * 2
