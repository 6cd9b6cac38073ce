"""One NVIDIA GPU: PyTorch's own memory, the driver's own events and its wait for everything."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from time import perf_counter_ns, sleep  # bound now, before a candidate could replace them
from typing import Any

import torch

from egg.evaluation.devices.backend import Window
from egg.evaluation.devices.driver import Driver
from egg.evaluation.devices.shared import SharedMemory
from egg.evaluation.tensors import storage_of
from egg.schema.evaluation import UNKNOWN

FLUSH_FACTOR = 2
"""Times the second-level cache that a flush touches."""
_CALLS_BEFORE_CAPTURE = 3
_LEAST_FLUSH_BYTES = 64 * 2**20
_KEPT_FREE_BYTES = 2 * 2**30
"""Free memory that a worker may keep: giving it back costs a wait, and taking it again a few milliseconds."""
_NAN_BYTE = 0xFF
"""Makes a NaN of every floating type, and -1 of every integer."""


def free_blocks(segments: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """Yields address and size of each free block of the common pool, from PyTorch's snapshot of its memory."""
    for segment in segments:
        if tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0):
            continue
        address = int(segment["address"])
        for block in segment["blocks"]:
            if block["state"] == "inactive":
                yield address, int(block["size"])
            address += int(block["size"])


class CudaDevice:
    """Implements `Backend` on the current device. The context is made here, before any candidate code."""

    kind = "cuda"
    torch_device = "cuda"
    slow_call_s = 0.002

    def __init__(self) -> None:
        torch.cuda.init()
        torch.zeros(1, device="cuda")  # makes the context current in this thread
        self._driver = Driver()
        self._shared = SharedMemory(self._driver.mapped(), self._driver)
        self._snapshot = torch.cuda.memory_snapshot
        self._reserved, self._allocated = torch.cuda.memory_reserved, torch.cuda.memory_allocated
        self._empty_cache = torch.cuda.empty_cache
        self._stream_of = torch.cuda.current_stream
        self._sum, self._empty = torch.sum, torch.empty
        # Extensions are built for the device at hand; PyTorch would add others, some unknown to the compiler.
        self._properties: Any = torch.cuda.get_device_properties(0)
        os.environ.setdefault("TORCH_CUDA_ARCH_LIST", self.architecture())
        self._start, self._end = self._driver.event(), self._driver.event()
        size = max(FLUSH_FACTOR * self.l2_bytes, _LEAST_FLUSH_BYTES)
        self._written = self._driver.allocate(size)
        self._flush_bytes = size
        self._read = torch.zeros(size // 8, dtype=torch.int64, device="cuda")
        self.flush()
        self.join()

    @property
    def driver(self) -> Driver:
        """The privately bound driver."""
        return self._driver

    @property
    def l2_bytes(self) -> int:
        """Bytes of the second-level cache, as the device says."""
        return int(getattr(self._properties, "L2_cache_size", 0))

    def clock_ns(self) -> int:
        """Returns nanoseconds of the host's monotonic clock."""
        return perf_counter_ns()

    def sleep(self, seconds: float) -> None:
        """Lets the host wait."""
        sleep(seconds)

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a copy on the device with the same strides, gaps and overlaps."""
        if tensor.layout is not torch.strided:
            return tensor.to("cuda", copy=True)
        return storage_of(tensor).to("cuda", copy=True).as_strided(tensor.shape, tensor.stride())

    def home(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a copy in host memory with the same strides, taken once the device is idle."""
        if tensor.device.type == "cpu":
            return tensor
        self.join()
        return storage_of(tensor.detach()).cpu().as_strided(tensor.shape, tensor.stride())

    def owns(self, tensor: torch.Tensor) -> bool:
        """Returns whether the tensor lies on the device."""
        return tensor.device.type == "cuda"

    def join(self) -> None:
        """Waits for all work of all streams. Raises DeviceFault."""
        self._driver.synchronize()

    def window(self, function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, Window]:
        """Returns what one call gives, and its time. What was queued before, a flush too, has ended by then.

        The end event is recorded where the call returns, so that work on a stream of its own shows as a gap between
        the two figures.
        """
        clock, driver = perf_counter_ns, self._driver
        stream = int(self._stream_of().cuda_stream)
        driver.synchronize()
        started = clock()
        driver.record(self._start, stream)
        result = function(*args, **kwargs)
        driver.record(self._end, stream)
        driver.synchronize()
        ended = clock()
        return result, Window(ended - started, driver.elapsed_ns(self._start, self._end))

    def replayed_ns(self, function: Callable[..., Any], args: Any, kwargs: Any, calls: int) -> int | None:
        """Returns the median of a call replayed from a graph with flushed caches; None where it can't be captured."""
        side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        self.join()  # a stream of its own waits for nothing, and the inputs may still be on their way
        try:
            with torch.cuda.stream(side):  # what is tuned or allocated in a first call can't be captured
                for _ in range(_CALLS_BEFORE_CAPTURE):
                    function(*args, **kwargs)
            self.join()
            with torch.cuda.graph(graph):
                function(*args, **kwargs)
        except RuntimeError:  # it waits for the device, or reads from it
            return None
        times: list[int] = []
        for _ in range(calls):
            self.flush()
            times.append(self.window(graph.replay, (), {})[1].device_ns)
        return sorted(times)[len(times) // 2]

    def flush(self) -> None:
        """Writes twice the cache, then reads as much of other memory, which drives the written lines out."""
        self._driver.reset_persisting()
        self._driver.fill(self._written, 0, self._flush_bytes)
        self._sum(self._read)

    def poison(self, least_bytes: int = 0) -> None:
        """Overwrites every free block that PyTorch's allocator would hand out, through the driver.

        Those of a pool that a graph was captured in belong to its replays, and nothing else is given them.
        """
        with suppress(torch.OutOfMemoryError):  # what comes from the driver itself is full of zeros
            self._empty(least_bytes, dtype=torch.uint8, device="cuda")
        self._driver.synchronize()
        for address, size in free_blocks(self._snapshot()):
            self._driver.fill(address, _NAN_BYTE, size)
        self._driver.synchronize()

    def trim(self) -> None:
        """Gives free memory back to the device where PyTorch keeps more than `_KEPT_FREE_BYTES` of it."""
        if self._reserved() - self._allocated() > _KEPT_FREE_BYTES:
            self._driver.synchronize()
            self._empty_cache()

    def crowded(self) -> bool:
        """Returns whether other processes hold more than half of the device's memory."""
        free, total = torch.cuda.mem_get_info()
        return total - free - self._reserved() > total / 2

    def send(self, tensor: torch.Tensor) -> dict[str, Any] | None:
        """Returns the name of a copy in memory of its own; None where the tensor travels as a file."""
        self.join()
        return self._shared.send(tensor)

    def receive(self, body: dict[str, Any]) -> torch.Tensor:
        """Returns a copy of what another worker sent. Raises Unsupported."""
        return self._shared.receive(body)

    def release_sent(self) -> None:
        """Frees what was sent before."""
        self._shared.release()

    def share(self, on: bool) -> None:
        """Sets whether tensors stay on the device on their way to the other worker."""
        self._shared.on = on

    def offer(self) -> dict[str, Any]:
        """Returns what another worker needs to try to map memory; empty where the driver shares none."""
        offered = self._shared.offer()
        self.join()
        return offered

    def accept(self, offered: object) -> bool:
        """Returns whether the other worker's memory can be read."""
        return self._shared.accept(offered)

    def architecture(self) -> str:
        """Returns the compute capability, such as `9.0`: the one that extensions are built for."""
        return f"{self._properties.major}.{self._properties.minor}"

    def describe(self) -> dict[str, str]:
        """Returns the device with its versions; clocks and temperature are read by the caller."""
        free, total = torch.cuda.mem_get_info()
        return {
            "device": "cuda",
            "gpu": str(self._properties.name),
            "architecture": self.architecture(),
            "gpu_uuid": str(getattr(self._properties, "uuid", UNKNOWN)),
            "gpu_memory_bytes": str(total),
            "gpu_free_bytes": str(free),
            "l2_bytes": str(self.l2_bytes or UNKNOWN),
            "cuda": str(torch.version.cuda or UNKNOWN),
            "cuda_driver_api": self._driver.version(),
            "cache_flush": f"{self._flush_bytes} bytes written, then as many read",
        }
