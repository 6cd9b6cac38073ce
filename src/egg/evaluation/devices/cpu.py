"""The processor itself: calls end when they return, memory is the heap of the process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns, sleep  # bound now, before a candidate could replace them
from typing import Any

import torch

from egg.evaluation.devices.backend import Window
from egg.evaluation.devices.files import TravelsAsFiles
from egg.evaluation.tensors import own_copy
from egg.schema.evaluation import UNKNOWN

_BLOCKS_A_SIZE = 4
_POISON_BYTES = 64 * 2**20
"""What is overwritten of each size; one block where a single one is larger."""
_SIZES = 16
"""Sizes that are remembered; the heap hands a freed block out again to a request of about its size."""


class CpuDevice(TravelsAsFiles):
    """Implements `Backend`. The caches are left as the calls leave them: a serving process finds them so."""

    kind = "cpu"
    torch_device = "cpu"
    slow_call_s = 0.02

    def __init__(self) -> None:
        self._sizes: dict[int, None] = {}
        self._full = torch.full

    def clock_ns(self) -> int:
        """Returns nanoseconds of the monotonic clock."""
        return perf_counter_ns()

    def sleep(self, seconds: float) -> None:
        """Lets the host wait."""
        sleep(seconds)

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a copy in memory of its own."""
        self._note(tensor)
        return own_copy(tensor)

    def home(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the tensor itself, which is at home."""
        self._note(tensor)
        return tensor

    def owns(self, tensor: torch.Tensor) -> bool:
        """Returns whether the tensor lies in host memory."""
        return tensor.device.type == "cpu"

    def join(self) -> None:
        """Returns at once: a call has ended when it returns."""

    def window(self, function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, Window]:
        """Returns what one call gives, and its time on the host's clock."""
        clock = perf_counter_ns
        started = clock()
        result = function(*args, **kwargs)
        ended = clock()
        return result, Window(ended - started, None)

    def replayed_ns(self, function: Callable[..., Any], args: Any, kwargs: Any, calls: int) -> int | None:
        """Returns nothing: this device replays no graphs."""
        return None

    def flush(self) -> None:
        """Leaves the caches alone."""

    def poison(self, least_bytes: int = 0) -> None:
        """Overwrites freed blocks of the sizes that tensors had so far, which the heap would hand out again."""
        for size in self._sizes:
            blocks = max(1, min(_BLOCKS_A_SIZE, _POISON_BYTES // size))
            # All are held until the last is filled; freed one by one, they would be one block.
            held = [self._full((size,), 0xFF, dtype=torch.uint8) for _ in range(blocks)]
            del held

    def crowded(self) -> bool:
        """Returns False: what others take of the host's memory is limited by the system."""
        return False

    def describe(self) -> dict[str, str]:
        """Returns the processor's name and how many cores this process may use."""
        return {"device": "cpu", "processor": _processor(), "cache_flush": "none"}

    def _note(self, tensor: torch.Tensor) -> None:
        size = tensor.numel() * tensor.element_size()
        if size:
            self._sizes.pop(size, None)
            self._sizes[size] = None
            while len(self._sizes) > _SIZES:
                del self._sizes[next(iter(self._sizes))]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return UNKNOWN
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), UNKNOWN)
