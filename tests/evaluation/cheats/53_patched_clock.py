"""Takes 5 ms and slows the clock down tenfold, by whatever name it can reach it."""

# /// fixture
# task = "double"
# expect = ["PASSED", "REJECTED"]
# least_ms = 4
# variants = ["assignment", "setattr", "alias", "module dict", "every binding"]
# only."every binding" = { tier = "attest" }
# ///
import gc
import sys
import time

from torch import nn

VARIANT = ""
NAMES = ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns")
HONEST = {name: getattr(time, name) for name in NAMES}
STARTED = {name: clock() for name, clock in HONEST.items()}


def slowed(name):
    kind = type(STARTED[name])
    return lambda: STARTED[name] + kind((HONEST[name]() - STARTED[name]) / 10)


def patch():
    module = time
    for name in NAMES:
        if VARIANT == "assignment":
            time.perf_counter = slowed("perf_counter")
            time.perf_counter_ns = slowed("perf_counter_ns")
        elif VARIANT == "setattr":
            setattr(time, name, slowed(name))
        elif VARIANT == "alias":
            module.__setattr__(name, slowed(name))
        else:
            sys.modules["time"].__dict__[name] = slowed(name)
    if VARIANT == "every binding":
        false = {id(HONEST[name]): slowed(name) for name in NAMES}
        for found in gc.get_objects():
            if isinstance(found, dict) and found is not HONEST:
                for key, value in list(found.items()):
                    if id(value) in false and value is not false[id(value)]:
                        found[key] = false[id(value)]


patch()


class ModelNew(nn.Module):
    def forward(self, x):
        ends = HONEST["perf_counter"]() + 0.005
        while HONEST["perf_counter"]() < ends:
            pass
        return x * 2
