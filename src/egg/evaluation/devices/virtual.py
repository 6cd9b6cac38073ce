"""The virtual machine as a `Backend`: what the harness does to a GPU it does to this one, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from egg.evaluation.devices.backend import Window
from egg.evaluation.devices.files import TravelsAsFiles
from egg.evaluation.devices.machine.streams import Machine
from egg.evaluation.tensors import span

FLUSH_FACTOR = 2


class VirtualDevice(TravelsAsFiles):
    """Implements `Backend`. It binds what it uses of the machine before a program can replace it."""

    kind = "virtual"
    torch_device = "cpu"
    slow_call_s = 0.02

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._synchronize = machine.synchronize
        self._record = machine.record
        self._launch = machine.launch
        size = FLUSH_FACTOR * machine.cache_bytes
        self._written = machine.memory.empty((size,), torch.uint8)
        self._read = machine.memory.empty((size,), torch.uint8)

    def clock_ns(self) -> int:
        """Returns the machine's own time."""
        return self._machine.now_ns

    def sleep(self, seconds: float) -> None:
        """Lets virtual time pass."""
        self._machine.elapse(round(1e9 * seconds))

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a copy in the machine's memory with the same strides."""
        elements = span(list(tensor.shape), list(tensor.stride()))
        memory = self._machine.memory.empty((elements,), tensor.dtype)
        placed = memory.as_strided(tensor.shape, tensor.stride())
        memory.copy_(tensor.as_strided((elements,), (1,)))
        return placed

    def home(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a copy that later work does not reach, as it is once the machine is idle."""
        self.join()
        return tensor.detach().clone()

    def owns(self, tensor: torch.Tensor) -> bool:
        """Returns whether the tensor lies in the machine's memory."""
        return self._machine.memory.block_of(tensor) is not None

    def join(self) -> None:
        """Waits for all streams. Raises DeviceFault."""
        self._synchronize()

    def window(self, function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, Window]:
        """Returns what one call gives, and its time in the machine."""
        self.join()
        started = self._machine.now_ns
        start = self._record()
        result = function(*args, **kwargs)
        end = self._record()
        self.join()
        return result, Window(self._machine.now_ns - started, end.at_ns - start.at_ns)

    def replayed_ns(self, function: Callable[..., Any], args: Any, kwargs: Any, calls: int) -> int | None:
        """Returns nothing: this device replays no graphs."""
        return None

    def flush(self) -> None:
        """Writes twice the cache, then reads as much of other memory."""
        self._launch(lambda _: None, writes=(self._written,))
        self._launch(lambda _: None, reads=(self._read,))

    def poison(self, least_bytes: int = 0) -> None:
        """Overwrites every free block with NaN."""
        self.join()
        for block in self._machine.memory.free_blocks():
            block[:] = b"\xff" * len(block)

    def crowded(self) -> bool:
        """Returns False: what others take of the host's memory is limited by the system."""
        return False

    def describe(self) -> dict[str, str]:
        """Returns what it is."""
        return {"device": "virtual", "l2_bytes": str(self._machine.cache_bytes)}
