"""What the harness needs of a device inside a worker, as a Protocol. Stopwatch and checks know no more than this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch

Target = Literal["cpu", "cuda"]


@dataclass(frozen=True)
class Window:
    """The time of one call, from just before it until the whole device was idle again."""

    host_ns: int
    """On the host's monotonic clock."""
    event_ns: int | None
    """Between two events on the device's current stream; None where the device has none."""

    @property
    def device_ns(self) -> int:
        """The device's own figure where it has one, else the host's."""
        return self.host_ns if self.event_ns is None else self.event_ns


class Backend(Protocol):
    """One device. Each handle that it uses was bound before a candidate could replace it."""

    kind: str
    """`cpu`, `cuda` or `virtual`."""
    torch_device: str
    """What PyTorch calls it."""
    slow_call_s: float
    """Seconds from which on a call is slow: one before a block is then enough to leave what another process did."""

    def clock_ns(self) -> int:
        """Returns nanoseconds of the host's monotonic clock."""
        ...

    def sleep(self, seconds: float) -> None:
        """Lets the host wait."""
        ...

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a copy in the device's memory with the same strides, gaps and overlaps."""
        ...

    def home(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the tensor in host memory with the same strides, as it is once the device is idle."""
        ...

    def owns(self, tensor: torch.Tensor) -> bool:
        """Returns whether the tensor lies in the device's memory."""
        ...

    def join(self) -> None:
        """Waits for all work of all streams. Raises DeviceFault where some of it failed."""
        ...

    def window(self, function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, Window]:
        """Returns what one call gives, and its time. The device is idle before and after."""
        ...

    def replayed_ns(self, function: Callable[..., Any], args: Any, kwargs: Any, calls: int) -> int | None:
        """Returns the median of a call replayed from a graph with flushed caches; None where it can't be captured."""
        ...

    def flush(self) -> None:
        """Leaves nothing of earlier work in the device's caches, and no line that has yet to be written back."""
        ...

    def poison(self, least_bytes: int = 0) -> None:
        """Overwrites free memory with NaN, so that what is never written is never right by luck.

        Of the memory that the next call is going to take, that is `least_bytes` at least, if there are as many.
        """
        ...

    def trim(self) -> None:
        """Gives memory that is kept for later calls back to the device, where it is much: other workers need it too."""
        ...

    def crowded(self) -> bool:
        """Returns whether other processes hold more than half of the device's memory."""
        ...

    def send(self, tensor: torch.Tensor) -> dict[str, Any] | None:
        """Returns what the device of another worker needs to receive a tensor; None where it travels as a file."""
        ...

    def receive(self, body: dict[str, Any]) -> torch.Tensor:
        """Returns a copy of what the device of another worker sent. Raises Unsupported."""
        ...

    def release_sent(self) -> None:
        """Frees what was sent before."""
        ...

    def share(self, on: bool) -> None:
        """Sets whether tensors are sent within the device's memory."""
        ...

    def offer(self) -> dict[str, Any]:
        """Returns what another worker needs to try to map memory; empty where the device shares none."""
        ...

    def accept(self, offered: object) -> bool:
        """Returns whether this worker can map what another one offers."""
        ...

    def describe(self) -> dict[str, str]:
        """Returns what figures of this device rest on; what can't be read is `unknown`."""
        ...


def open_device(target: str) -> Backend:
    """Returns the device of a target. Raises RuntimeError where this machine has none."""
    if target == "cpu":
        from egg.evaluation.devices.cpu import CpuDevice

        return CpuDevice()
    if target == "cuda":
        from egg.evaluation.devices.cuda import CudaDevice

        return CudaDevice()
    raise ValueError(f"target {target!r}: choose cpu or cuda")
