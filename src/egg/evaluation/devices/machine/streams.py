"""Streams on a virtual clock: launches return at once, what they do is seen when their time has come."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

import torch

from egg.evaluation.devices.faults import DeviceFault
from egg.evaluation.devices.machine.cache import Cache
from egg.evaluation.devices.machine.memory import Memory

LAUNCH_NS = 3_000
"""What a launch costs the host."""
MEMORY_BYTES_NS = 1.0
CACHE_BYTES_NS = 8.0


class KernelFault(Exception):
    """A kernel touched what it may not; every later call of the machine fails."""


@dataclass
class Stream:
    """Work in order."""

    name: str
    ends_ns: int = 0
    """When its last work is done."""


@dataclass
class Event:
    """A point of time in a stream."""

    at_ns: int = 0


class Machine:
    """The virtual device with the host that drives it. Public names may be replaced by a program under test."""

    def __init__(self, random: Random, cache_bytes: int = 256 * 1024) -> None:
        self.now_ns = 0
        self.memory = Memory()
        self.cache = Cache(cache_bytes)
        self.cache_bytes = cache_bytes
        self.default = Stream("default")
        self.launches = 0
        self._random = random
        self._streams = [self.default]
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()
        self._fault = ""

    def stream(self, name: str) -> Stream:
        """Returns a new stream, which waits for no other."""
        self._check()
        self._streams.append(Stream(name))
        return self._streams[-1]

    def launch(
        self,
        body: Callable[[int], None],
        busy_ns: int = 0,
        stream: Stream | None = None,
        reads: Sequence[torch.Tensor] = (),
        writes: Sequence[torch.Tensor] = (),
        blocks: int = 1,
    ) -> None:
        """Queues a kernel; its blocks run in a random order when it ends. Its time includes the memory it moves."""
        self._check()
        self.launches += 1
        self.now_ns += LAUNCH_NS
        stream = stream or self.default
        duration = busy_ns + sum(self._moved_ns(t, False) for t in reads) + sum(self._moved_ns(t, True) for t in writes)
        stream.ends_ns = max(stream.ends_ns, self.now_ns) + duration
        order = self._random.sample(range(blocks), blocks)

        def run() -> None:
            for block in order:
                body(block)

        heapq.heappush(self._queue, (stream.ends_ns, next(self._numbers), run))

    def record(self, stream: Stream | None = None) -> Event:
        """Returns an event behind the work that a stream has now."""
        self._check()
        stream = stream or self.default
        return Event(max(stream.ends_ns, self.now_ns))

    def wait(self, stream: Stream, event: Event) -> None:
        """Lets later work of a stream begin behind an event."""
        stream.ends_ns = max(stream.ends_ns, event.at_ns)

    def synchronize(self, stream: Stream | None = None) -> None:
        """Lets the host wait for one stream, or for all."""
        ends = [s.ends_ns for s in (self._streams if stream is None else [stream])]
        self.elapse(max(0, max(ends) - self.now_ns))
        self._check()

    def elapse(self, nanoseconds: int) -> None:
        """Lets time pass on the host; kernels whose end has come take effect."""
        self.now_ns += nanoseconds
        while self._queue and self._queue[0][0] <= self.now_ns:
            _, _, run = heapq.heappop(self._queue)
            if self._fault:
                continue
            try:
                run()
            except (KernelFault, IndexError) as error:
                self._fault = str(error) or "illegal address"

    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a copy on the host, taken behind the default stream only, as an ordinary copy is."""
        self.synchronize(self.default)
        return tensor.clone()

    def empty(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Returns memory as it is."""
        self._check()
        return self.memory.empty(shape, dtype)

    def touch(self, tensor: torch.Tensor, write: bool = False) -> int:
        """Returns nanoseconds that the traffic of a tensor takes, and leaves it in the cache."""
        return self._moved_ns(tensor, write)

    def _moved_ns(self, tensor: torch.Tensor, write: bool) -> int:
        block = self.memory.block_of(tensor)
        if block is None:
            raise KernelFault("a kernel was given host memory")
        hit, moved = self.cache.touch(block, tensor.numel() * tensor.element_size(), write)
        return round(hit / CACHE_BYTES_NS + moved / MEMORY_BYTES_NS)

    def _check(self) -> None:
        if self._fault:
            raise DeviceFault(f"virtual device: {self._fault}", self._fault)


class Graph:
    """Launches that were captured once and are replayed with the tensors that they had then."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._captured: list[Callable[[], None]] = []

    def add(self, launch: Callable[[], None]) -> None:
        """Adds a launch."""
        self._captured.append(launch)

    def replay(self) -> None:
        """Launches everything again for the price of one launch on the host."""
        before = self._machine.now_ns
        for launch in self._captured:
            launch()
        self._machine.now_ns = before + LAUNCH_NS
