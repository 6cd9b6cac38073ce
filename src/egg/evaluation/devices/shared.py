"""Tensors that go from one worker to another within a GPU's memory, where the driver lets two processes share it."""

from __future__ import annotations

from typing import Any

import torch

from egg.evaluation.devices.backend import DeviceFault
from egg.evaluation.devices.driver import Driver
from egg.evaluation.tensors import Unsupported, span, storage_of

LEAST_BYTES = 2**20
"""Smaller tensors travel as files, which costs less than a mapping."""


class SharedMemory:
    """Exports copies in memory of their own, never the allocator's, so that nothing else is seen through a handle."""

    def __init__(self, driver: Driver) -> None:
        self.on = False
        self._driver = driver
        self._exported: list[int] = []

    def offer(self) -> str:
        """Returns the handle of a few bytes, to find out whether another process can map them; empty where not."""
        try:
            address = self._driver.allocate(LEAST_BYTES)
            self._exported.append(address)
            return self._driver.export(address)
        except DeviceFault:
            return ""

    def accept(self, handle: str) -> bool:
        """Returns whether this process can map what another one offers."""
        try:
            address, _ = self._driver.open(handle)
            self._driver.close(address)
        except (DeviceFault, ValueError):
            return False
        return True

    def send(self, tensor: torch.Tensor) -> dict[str, Any] | None:
        """Returns what `receive` needs of a tensor; None where it travels as a file."""
        size = span(list(tensor.shape), list(tensor.stride())) * tensor.element_size()
        if not self.on or size < LEAST_BYTES:
            return None
        address = self._driver.allocate(size)
        self._exported.append(address)
        self._driver.copy(address, tensor.data_ptr(), size)
        return {"shared": self._driver.export(address), "bytes": size}

    def receive(self, body: dict[str, Any]) -> torch.Tensor:
        """Returns a copy of what another process sent. Raises Unsupported where the handle is none or too small."""
        dtype, shape, stride = getattr(torch, body["dtype"]), list(body["shape"]), list(body["stride"])
        elements = span(shape, stride)
        tensor = torch.empty(elements, dtype=dtype, device="cuda").as_strided(shape, stride)
        memory = storage_of(tensor)
        try:
            address, size = self._driver.open(str(body["shared"]))
        except (DeviceFault, ValueError) as error:
            raise Unsupported(f"shared memory that can't be mapped: {error}") from error
        try:
            wanted = elements * dtype.itemsize
            if size < wanted:
                raise Unsupported(f"shared memory of {size} bytes; {wanted} are needed")
            self._driver.copy(memory.data_ptr(), address, wanted)
        finally:
            self._driver.close(address)
        return tensor

    def release(self) -> None:
        """Frees what was sent before; everybody has taken a copy by now."""
        for address in self._exported:
            self._driver.free(address)
        self._exported = []
