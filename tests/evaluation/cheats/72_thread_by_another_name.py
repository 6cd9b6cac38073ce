"""Starts a thread without the word: through _thread, through a timer signal, or in a generator of another package."""

# /// fixture
# task = "double"
# expect = ["WRONG_VALUE", "REJECTED"]
# variants = ["low level", "timer", "alarm"]
# ///
import signal
import time

import torch
from torch import nn

VARIANT = ""
LATER = []


def fill(*_):
    if VARIANT == "low level":
        time.sleep(0.02)
    for out, x in LATER:
        torch.mul(x, 2, out=out)
    LATER.clear()


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        LATER.append((out, x))
        if VARIANT == "low level":
            __import__("_th" + "read").start_new_thread(fill, ())
        elif VARIANT == "timer":
            clock = getattr(__import__("thread" + "ing"), "Ti" + "mer")(0.02, fill)
            clock.daemon = True
            clock.start()
        else:
            signal.signal(signal.SIGALRM, fill)
            signal.setitimer(signal.ITIMER_REAL, 0.02)
        return out
