"""Reaches into the process that started it: traces it, reads its memory, or asks whether it may send a signal."""

# /// fixture
# task = "double"
# expect = ["RUNTIME_ERROR"]
# variants = ["trace", "memory file", "memory call", "signal", "descriptors"]
# guarantee = "processes"
# ///
import ctypes
import os
from pathlib import Path

from torch import nn

VARIANT = ""
PARENT = os.getppid()
SEIZE = 0x4206  # attaches without a stop, so that nothing hangs where it is allowed
LIBC = ctypes.CDLL(None, use_errno=True)


def refused(answer):
    if answer < 0:
        raise PermissionError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if VARIANT == "trace":
    refused(LIBC.ptrace(SEIZE, PARENT, None, None))
elif VARIANT == "memory file":
    Path(f"/proc/{PARENT}/mem").open("rb").close()
elif VARIANT == "memory call":
    piece = ctypes.create_string_buffer(8)
    pair = (ctypes.c_void_p * 2)(ctypes.addressof(piece), 8)
    remote = (ctypes.c_void_p * 2)(id(None), 8)
    refused(LIBC.process_vm_readv(PARENT, pair, 1, remote, 1, 0))
elif VARIANT == "signal":
    if PARENT == 0:
        raise ProcessLookupError("its parent is out of sight")
    os.kill(PARENT, 0)
else:
    os.listdir(f"/proc/{PARENT}/fd")


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2
