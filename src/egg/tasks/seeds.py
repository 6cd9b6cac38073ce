"""Random state: set for one draw, restored afterwards."""

from __future__ import annotations

import random
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

INPUT_STREAM = 0x9E3779B9
"""Keeps the draw of the inputs apart from that of the weights under the same seed, so that they never coincide."""


def input_seed(seed: int) -> int:
    """Returns the seed for the inputs that belongs to the seed of a task."""
    return (seed ^ INPUT_STREAM) % 2**32


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """Seeds the generators of torch, `random` and, where it is loaded, numpy; restores their state at the end."""
    numpy: Any = sys.modules.get("numpy")
    python_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy else None
    # The caller draws inputs too, and has no business with a context on the device.
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        random.seed(seed)
        if numpy:
            numpy.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(python_state)
            if numpy:
                numpy.random.set_state(numpy_state)
