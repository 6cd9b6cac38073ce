"""Tensors that go from one worker to another within a GPU's memory, where the driver lets two processes share it."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from egg.evaluation.devices.faults import DeviceFault
from egg.evaluation.devices.mapped import Mapping
from egg.evaluation.tensors import Unsupported, span, storage_of
from egg.evaluation.workers.parcels import MAILBOX, NAMED, Mailbox

LEAST_BYTES = 2**20
"""Smaller tensors travel as files, which costs less than a mapping."""
_OFFERED = {"dtype": "uint8", "shape": [LEAST_BYTES], "stride": [1], "bytes": LEAST_BYTES}
_PATTERN = 0x5A


class Memory(Protocol):
    """What sharing needs of the driver; each method may raise DeviceFault."""

    def create(self, size: int) -> Mapping:
        """Returns new memory that can be shared."""
        ...

    def export(self, mapping: Mapping) -> int:
        """Returns a descriptor of it."""
        ...

    def open(self, fd: int, size: int) -> Mapping:
        """Returns memory of another process."""
        ...

    def close(self, mapping: Mapping) -> None:
        """Unmaps memory."""
        ...


class Copies(Protocol):
    """Copies and fills within the device."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Copies and waits."""
        ...

    def fill(self, address: int, byte: int, size: int) -> None:
        """Fills memory with one byte."""
        ...


class SharedMemory:
    """Exports copies in memory of their own, never the allocator's, so that nothing else is seen through a descriptor.

    `memory` is None where the driver can't share any.
    """

    def __init__(self, memory: Memory | None, copies: Copies, mailbox: Mailbox = MAILBOX, device: str = "cuda") -> None:
        self.on = False
        self._memory = memory
        self._copies = copies
        self._mailbox = mailbox
        self._device = device
        self._exported: dict[str, Mapping] = {}

    def offer(self) -> dict[str, Any]:
        """Returns what another process needs to try to map a little memory of this one; empty where there is none."""
        try:
            mapping, name = self._export(LEAST_BYTES)
            self._copies.fill(mapping.address, _PATTERN, LEAST_BYTES)
        except DeviceFault:
            return {}
        return {**_OFFERED, NAMED: name}

    def accept(self, offered: object) -> bool:
        """Returns whether this process can read what another one offers."""
        if not isinstance(offered, dict) or not isinstance(name := offered.get(NAMED), str):
            return False
        try:
            received = self.receive({**_OFFERED, NAMED: name})
        except Unsupported:
            return False
        return bool((received == _PATTERN).all())

    def send(self, tensor: torch.Tensor) -> dict[str, Any] | None:
        """Returns what `receive` needs of a tensor; None where it travels as a file."""
        size = span(list(tensor.shape), list(tensor.stride())) * tensor.element_size()
        if not self.on or size < LEAST_BYTES or self._mailbox.full:
            return None
        try:
            mapping, name = self._export(size)
        except DeviceFault:  # no room for a copy on the device
            return None
        self._copies.copy(mapping.address, tensor.data_ptr(), size)
        return {NAMED: name, "bytes": size}

    def receive(self, body: dict[str, Any]) -> torch.Tensor:
        """Returns a copy of what another process sent. Raises Unsupported where it is none, or too small."""
        dtype, shape, stride = getattr(torch, body["dtype"]), list(body["shape"]), list(body["stride"])
        elements = span(shape, stride)
        wanted = elements * dtype.itemsize
        if self._memory is None or not 0 < wanted <= int(body["bytes"]):
            raise Unsupported(f"shared memory of {body['bytes']} bytes; {wanted} are needed")
        try:
            # Mapped first: a claim of any size takes no memory here until there is as much on the other side.
            mapping = self._memory.open(self._mailbox.descriptor(str(body[NAMED])), wanted)
        except (DeviceFault, ValueError) as error:
            raise Unsupported(f"shared memory that can't be mapped: {error}") from error
        try:
            tensor = torch.empty(elements, dtype=dtype, device=self._device).as_strided(shape, stride)
            self._copies.copy(storage_of(tensor).data_ptr(), mapping.address, wanted)
        finally:
            self._memory.close(mapping)
        return tensor

    def release(self) -> None:
        """Frees what was sent before; everybody has taken a copy by now."""
        for name, mapping in self._exported.items():
            if self._memory is not None:
                self._memory.close(mapping)
            self._mailbox.take_back(name)
        self._exported = {}

    def _export(self, size: int) -> tuple[Mapping, str]:
        if self._memory is None:
            raise DeviceFault("the driver shares no memory")
        mapping = self._memory.create(size)
        try:
            name = self._mailbox.leave(self._memory.export(mapping))
        except BaseException:
            self._memory.close(mapping)
            raise
        self._exported[name] = mapping
        return mapping, name
