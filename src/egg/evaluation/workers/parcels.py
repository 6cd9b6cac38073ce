"""Descriptors on their way between workers: of memory on a device, which no file system and no namespace hides.

A worker that sends memory leaves its descriptor in a parcel under a name that nobody can guess. The parcel goes to the
caller beside the reply, and from there to the other worker beside the first request that names it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MOST = 200
"""Parcels beside one message; the kernel takes 253 descriptors."""
_MOST_HELD = 2 * MOST
"""Of one sender, so that none uses up the descriptors of the caller."""
NAMED = "shared"
"""The key under which a message names a parcel."""


class Mailbox:
    """The parcels of one worker."""

    def __init__(self) -> None:
        self._leaving: dict[str, int] = {}
        self._returned: list[str] = []
        self._arrived: dict[str, int] = {}

    @property
    def full(self) -> bool:
        """True where no more parcels fit beside the next reply."""
        return len(self._leaving) >= MOST

    def leave(self, fd: int) -> str:
        """Returns the name under which the other worker will find a descriptor, which belongs to the mailbox now."""
        name = secrets.token_hex(16)
        self._leaving[name] = fd
        return name

    def take_back(self, name: str) -> None:
        """Ends a parcel: its memory was freed, so nobody is to hold it any more."""
        if (fd := self._leaving.pop(name, None)) is not None:
            os.close(fd)
        else:
            self._returned.append(name)

    def collected(self) -> tuple[dict[str, int], list[str]]:
        """Returns the parcels that go beside the next reply and the names of those that ended; both are asked once."""
        leaving, self._leaving = self._leaving, {}
        returned, self._returned = self._returned, []
        return leaving, returned

    def arrive(self, names: Sequence[str], fds: Sequence[int]) -> None:
        """Takes the parcels of a request in; those of the one before are closed."""
        for fd in self._arrived.values():
            os.close(fd)
        self._arrived = dict(zip(names, fds, strict=True))

    def descriptor(self, name: str) -> int:
        """Returns the descriptor in a parcel of the present request. Raises ValueError."""
        if name not in self._arrived:
            raise ValueError("no such memory came with the request")
        return self._arrived[name]


MAILBOX = Mailbox()
"""That of this process, which has one channel."""


class Registry:
    """The caller's hold on all parcels: who sent each, until its sender takes it back or ends."""

    def __init__(self) -> None:
        self._held: dict[object, dict[str, int]] = {}

    def put(self, sender: object, names: object, fds: Sequence[int]) -> bool:
        """Takes parcels in; returns False, with every descriptor closed, where they are too many or not as told."""
        known = self._held.setdefault(sender, {})
        if names is None and not fds:
            return True
        if not isinstance(names, list) or len(names) != len(fds) or len(known) + len(fds) > _MOST_HELD:
            close_all(fds)
            return False
        for name, fd in zip(names, fds, strict=True):
            close_all([known[str(name)]] if str(name) in known else [])
            known[str(name)] = fd
        return True

    def end(self, sender: object, names: object = None) -> None:
        """Closes parcels of a sender, all without names."""
        known = self._held.get(sender, {})
        for name in list(known) if names is None else map(str, names if isinstance(names, list) else []):
            if (fd := known.pop(name, None)) is not None:
                os.close(fd)
        if not known:
            self._held.pop(sender, None)

    def named_in(self, fields: Mapping[str, Any], receiver: object) -> dict[str, int]:
        """Returns the parcels that a request names, of those that others than its receiver sent."""
        wanted = dict.fromkeys(_names(list(fields.values())))
        others = {n: fd for sender, held in self._held.items() if sender is not receiver for n, fd in held.items()}
        return {name: others[name] for name in wanted if name in others} if others else {}


def _names(values: Iterable[Any]) -> list[str]:
    """Returns the values of the key `NAMED` anywhere in a message, without recursion."""
    found: list[str] = []
    todo = list(values)
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            if isinstance(name := value.get(NAMED), str):
                found.append(name)
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return found


def close_all(fds: Iterable[int]) -> None:
    """Closes descriptors."""
    for fd in fds:
        os.close(fd)
