"""Length-prefixed JSON messages over a stream socket, the same on both ends.

Tensors never travel here: they go by raw-byte files (`tensors.py`). Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from egg.evaluation.workers.parcels import MOST, Mailbox, close_all

Message = dict[str, Any]

_HEADER = struct.Struct("<I")
MAX_MESSAGE_BYTES = 16 * 2**20
"""A longer message is refused, so that a worker can't fill the caller's memory."""
_DEEPEST = 64
"""How deep an answer may be nested: far more than any output, far less than what ends a reader."""
PARCELS, ENDED = "parcels", "ended"
"""Fields of a message: the names of the descriptors beside it, and of those that nobody is to hold any more."""
MAX_REPLY_BYTES = MAX_MESSAGE_BYTES // 2
"""A reply may be handed on to the other worker with more around it."""


class MalformedMessage(Exception):
    """The bytes on a channel are not a message: too long, not JSON, or not an object."""


def encode(message: Message) -> bytes:
    """Returns one framed message."""
    body = json.dumps(message).encode()
    return _HEADER.pack(len(body)) + body


class Decoder:
    """Collects bytes and gives back whole messages."""

    def __init__(self, limit_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._buffer = bytearray()
        self._limit_bytes = limit_bytes

    def feed(self, data: bytes) -> None:
        """Adds received bytes."""
        self._buffer += data

    def next(self) -> Message | None:
        """Returns the next whole message, or None until more bytes arrive. Raises MalformedMessage."""
        if len(self._buffer) < _HEADER.size:
            return None
        (length,) = _HEADER.unpack_from(self._buffer)
        if length > self._limit_bytes:
            raise MalformedMessage(f"a message of {length} bytes; at most {self._limit_bytes} are allowed")
        end = _HEADER.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_HEADER.size : end])
        del self._buffer[:end]
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise MalformedMessage(f"not JSON: {error}") from error
        if body.count(b"[") + body.count(b"{") > _DEEPEST and _depth(message) > _DEEPEST:
            raise MalformedMessage(f"nested deeper than {_DEEPEST}")
        if not isinstance(message, dict):
            raise MalformedMessage(f"expected an object, got {type(message).__name__}")
        return message


def _depth(value: object) -> int:
    """Returns how deep lists and objects are nested, without recursion."""
    deepest = 0
    level: list[object] = [value]
    while level := [inner for item in level if isinstance(item, list | dict) for inner in _items(item)]:
        deepest += 1
    return deepest


def _items(container: list[object] | dict[str, object]) -> list[object]:
    return list(container.values()) if isinstance(container, dict) else container


class Channel:
    """The worker's end: one request in, one reply out, each with parcels beside it."""

    def __init__(self, end: socket.socket, mailbox: Mailbox | None = None) -> None:
        self._end = end
        self._decoder = Decoder()
        self._mailbox = mailbox or Mailbox()

    def receive(self) -> Message | None:
        """Returns the next request, whose parcels are in the mailbox by then; None when the caller has gone."""
        fds: list[int] = []
        while (message := self._decoder.next()) is None:
            data, more, _, _ = socket.recv_fds(self._end, 65536, MOST)
            if not data:
                return None
            fds += more
            self._decoder.feed(data)
        self._mailbox.arrive(message.pop(PARCELS, []), fds)
        return message

    def send(self, message: Message) -> None:
        """Sends one reply with the parcels that wait for it."""
        leaving, ended = self._mailbox.collected()
        told = {PARCELS: list(leaving), ENDED: ended} if leaving or ended else {}
        frame = encode({**message, **told})
        sent = socket.send_fds(self._end, [frame], list(leaving.values())) if leaving else 0
        self._end.sendall(memoryview(frame)[sent:])
        close_all(leaving.values())  # the caller holds them now
