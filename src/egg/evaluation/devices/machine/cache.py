"""A second-level cache: which lines of which blocks are in it, and which were written and not written back."""

from __future__ import annotations

from collections import OrderedDict

LINE_BYTES = 4096


class Cache:
    """Keeps the lines that were touched last."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes // LINE_BYTES
        self._lines: OrderedDict[tuple[int, int], bool] = OrderedDict()

    @property
    def dirty_bytes(self) -> int:
        """Bytes that were written and are not yet in memory."""
        return LINE_BYTES * sum(self._lines.values())

    def touch(self, block: int, size: int, write: bool) -> tuple[int, int]:
        """Returns bytes found in the cache, and bytes that moved from or to memory, write-backs included."""
        hit = moved = 0
        for line in range(-(-size // LINE_BYTES)):
            key = (block, line)
            dirty = self._lines.pop(key, None)
            if dirty is None:
                moved += 0 if write else LINE_BYTES
            else:
                hit += LINE_BYTES
            self._lines[key] = write or bool(dirty)
            while len(self._lines) > self._capacity:
                _, was_dirty = self._lines.popitem(last=False)
                moved += LINE_BYTES if was_dirty else 0
        return hit, moved
