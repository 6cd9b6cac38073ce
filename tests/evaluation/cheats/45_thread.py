"""Returns at once; something that runs on fills the result later."""

# /// fixture
# task = "double"
# expect = ["WRONG_VALUE", "REJECTED"]
# variants = ["threading", "_thread", "executor", "process"]
# ///
import _thread
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

VARIANT = ""


def fill(out, x):
    time.sleep(0.02)
    torch.mul(x, 2, out=out)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = ThreadPoolExecutor(1)

    def forward(self, x):
        out = torch.empty_like(x)
        if VARIANT == "threading":
            threading.Thread(target=fill, args=(out, x), daemon=True).start()
        elif VARIANT == "_thread":
            _thread.start_new_thread(fill, (out, x))
        elif VARIANT == "executor":
            self.pool.submit(fill, out, x)
        else:
            out.share_memory_()
            if os.fork() == 0:
                fill(out, x)
                os._exit(0)
        return out
