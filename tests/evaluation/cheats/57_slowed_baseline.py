"""Is as slow as the reference, and keeps the machine busy while the reference is timed."""

# /// fixture
# task = "linear"
# expect = ["PASSED", "REJECTED"]
# most_speedup = 1.3
# variants = ["threads setting", "thread", "process", "orphan"]
#
# [only.thread]
# expect = ["REJECTED"]
# says = "worked while the reference was timed"
# chances = 3
#
# [only.process]
# expect = ["REJECTED"]
# says = "worked while the reference was timed"
# chances = 3
#
# [only.orphan]
# expect = ["REJECTED"]
# says = "worked while the reference was timed"
# chances = 3
# ///
import os
import threading
import time

import torch
from torch import nn

VARIANT = ""
BUSY = [time.perf_counter()]


def burn():
    """Works where no call came lately; in another process, which sees none, always."""
    while True:
        if time.perf_counter() - BUSY[0] > 0.0005:
            torch.randn(200, 200) @ torch.randn(200, 200)
        else:
            time.sleep(0.0002)


def start_to_burn():
    if VARIANT == "thread":
        threading.Thread(target=burn, daemon=True).start()
    elif os.fork() == 0:
        if VARIANT == "orphan":
            os.setsid()
            if os.fork():
                os._exit(0)
        burn()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 96)
        self.started = False

    def forward(self, x):
        BUSY[0] = time.perf_counter()
        if VARIANT == "threads setting":
            torch.set_num_threads(1)
        elif not self.started:
            self.started = True
            start_to_burn()
        return self.linear(x)
