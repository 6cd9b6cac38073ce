"""Puts code where it runs later: at exit, in a destructor, in a hook, in a signal handler. It marks that it ran."""

# /// fixture
# task = "double"
# leaves_no = "deferred-mark"
# variants = ["atexit", "destructor", "excepthook", "signal", "finalizer"]
# ///
import atexit
import os
import signal
import sys
import time
import weakref
from pathlib import Path

from torch import nn

VARIANT = ""
MARK = Path(os.environ["TORCH_EXTENSIONS_DIR"]).parent / "deferred-mark"


def later(*_):
    MARK.touch()
    time.sleep(60)


class Last:
    def __del__(self):
        if VARIANT == "destructor":
            later()


LAST = Last()
if VARIANT == "atexit":
    atexit.register(later)
elif VARIANT == "excepthook":
    sys.excepthook = sys.unraisablehook = later
elif VARIANT == "signal":
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, later)
elif VARIANT == "finalizer":
    weakref.finalize(LAST, later)


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2
