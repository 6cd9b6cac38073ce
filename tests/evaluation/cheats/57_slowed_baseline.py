"""Is as slow as the reference, and keeps the machine busy while the reference is timed."""

# /// fixture
# task = "linear"
# expect = ["PASSED", "REJECTED"]
# most_speedup = 1.3
# variants = ["threads setting"]
# ///
import os
import threading
import time

import torch
from torch import nn

VARIANT = ""
BUSY = [time.perf_counter()]


def burn(watched):
    while True:
        if not watched or time.perf_counter() - BUSY[0] > 0.0005:
            torch.randn(400, 400) @ torch.randn(400, 400)


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
            if VARIANT == "thread":
                threading.Thread(target=burn, args=(True,), daemon=True).start()
            elif os.fork() == 0:
                burn(False)
        return self.linear(x)
