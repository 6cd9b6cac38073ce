"""Ends the process with a good exit code, or by a signal, before anything can be compared."""

# /// fixture
# task = "double"
# expect = ["RUNTIME_ERROR"]
# variants = ["import exit", "import _exit", "constructor exit", "constructor _exit", "forward exit", "forward _exit",
#   "forward kill", "forward system exit",
#   "forward fault"]
# only."forward kill" = { expect = ["RUNTIME_ERROR", "PASSED"] }  # the first process of a namespace can't kill itself
# ///
import ctypes
import os
import signal
import sys

from torch import nn

VARIANT = ""
WHEN = tuple(VARIANT.split(" ", 1))


def leave(where):
    if (where, "exit") == WHEN:
        sys.exit(0)
    if (where, "_exit") == WHEN:
        os._exit(0)
    if (where, "kill") == WHEN:
        os.kill(os.getpid(), signal.SIGKILL)
    if (where, "fault") == WHEN:
        ctypes.string_at(0)
    if (where, "system exit") == WHEN:
        raise SystemExit(0)


leave("import")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        leave("constructor")

    def forward(self, x):
        leave("forward")
        return x * 2
