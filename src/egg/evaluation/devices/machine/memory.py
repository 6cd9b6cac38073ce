"""A caching allocator that hands the block freed last out first, with what was in it."""

from __future__ import annotations

import ctypes
import weakref
from itertools import count
from typing import Any

import torch

GRANULE_BYTES = 512


class Memory:
    """Blocks by size. A tensor's block comes back when its storage is gone, as with PyTorch's own allocator."""

    def __init__(self) -> None:
        self._free: dict[int, list[tuple[int, bytearray]]] = {}
        self._numbers = count()
        self._owners: dict[int, int] = {}
        self._blocks: dict[int, bytearray] = {}

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Returns a tensor whose values are whatever its block held."""
        elements = 1
        for extent in shape:
            elements *= extent
        size = max(elements * dtype.itemsize, 1)
        size = -(-size // GRANULE_BYTES) * GRANULE_BYTES
        number, block = self._free[size].pop() if self._free.get(size) else (next(self._numbers), bytearray(size))
        self._blocks[number] = block
        view: Any = (ctypes.c_ubyte * size).from_buffer(block)
        weakref.finalize(view, self._release, size, number, block)
        flat = torch.frombuffer(view, dtype=torch.uint8)
        self._owners[flat.untyped_storage().data_ptr()] = number
        return flat[: elements * dtype.itemsize].view(dtype).view(shape)

    def free_blocks(self) -> list[bytearray]:
        """Returns the blocks that no tensor holds."""
        return [block for blocks in self._free.values() for _, block in blocks]

    def all_blocks(self) -> list[bytearray]:
        """Returns every block, as a program that walks through the device's memory finds them."""
        return list(self._blocks.values())

    def block_of(self, tensor: torch.Tensor) -> int | None:
        """Returns the number of the block that a tensor lies in; None where it lies elsewhere."""
        return self._owners.get(tensor.untyped_storage().data_ptr())

    def _release(self, size: int, number: int, block: bytearray) -> None:
        self._free.setdefault(size, []).append((number, block))
