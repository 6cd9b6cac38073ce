"""What both workers do when calls are timed; the same code for candidate and reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from egg.evaluation.calls import Call
from egg.evaluation.devices.backend import Backend, Window
from egg.evaluation.tensors import map_tensors, own_copy

HAND_OVER_S = 0.0025
"""Pause at the start of a block, in which the other worker's OpenMP threads stop to spin."""
DISCARDED_CALLS = 3
"""Calls of a block that are not counted: one for slow calls, none for calls so long that no start matters."""
KEPT_CALLS = 3
"""Outputs that are held to the end, to see whether a later call changes them."""
_SLOW_CALL_S = 0.02
_LONG_CALL_S = 0.1
_STABLE_CALLS = 5
_STABLE_WITHIN = 0.10


@dataclass(frozen=True)
class Block:
    """The windows of the timed calls of one block, and how long all of it took, discarded calls included."""

    windows: list[Window]
    block_ns: int


class Stopwatch:
    """Calls one function on a rotating pool of inputs and times each call, with cold caches where the device can."""

    def __init__(self, device: Backend, function: Callable[..., Any], pool: list[Call], fresh_inputs: bool) -> None:
        self._device = device
        self._function = function
        self._pool = [map_tensors(call, own_copy) for call in pool]
        self._fresh_inputs = fresh_inputs
        self._next = 0
        self._discarded = DISCARDED_CALLS

    def warm_up(self, limit_s: float, min_calls: int, min_s: float) -> tuple[int, float]:
        """Returns calls made and the median of the last ones in seconds, once they agree or the limit is reached."""
        started = self._device.clock_ns()
        times: list[float] = []
        while True:
            times.append(self._one_call().host_ns / 1e9)
            spent = (self._device.clock_ns() - started) / 1e9
            last = times[-_STABLE_CALLS:]
            steady = len(last) == _STABLE_CALLS and max(last) <= (1 + _STABLE_WITHIN) * min(last)
            if spent >= limit_s or (steady and len(times) >= min_calls and spent >= min_s):
                break
        typical = sorted(last)[len(last) // 2]
        if typical > _SLOW_CALL_S:
            self._discarded = 0 if typical > _LONG_CALL_S else 1
        return len(times), typical

    def block(self, calls: int) -> Block:
        """Returns the windows of `calls` calls in turn."""
        started = self._device.clock_ns()
        self._device.sleep(HAND_OVER_S)
        for _ in range(self._discarded):
            self._one_call()
        windows = [self._one_call() for _ in range(calls)]
        return Block(windows, self._device.clock_ns() - started)

    def _one_call(self) -> Window:
        args, kwargs = self._pool[self._next]
        self._next = (self._next + 1) % len(self._pool)
        if self._fresh_inputs:
            args, kwargs = map_tensors((args, kwargs), own_copy)
        self._device.flush()
        result, window = self._device.window(self._function, args, kwargs)
        del result  # freed outside the window, for both legs
        return window


class TimedOperations:
    """The operations of a worker whose calls are timed, by name; what is timed is put into `_stopwatch` first."""

    _stopwatch: Stopwatch | None = None

    def do_warm_up(self, limit_s: float, min_calls: int, min_s: float) -> dict[str, Any]:
        """Calls until the times are stable."""
        assert self._stopwatch is not None
        with torch.no_grad():
            calls, typical_s = self._stopwatch.warm_up(limit_s, min_calls, min_s)
        return {"calls": calls, "typical_s": typical_s}

    def do_block(self, calls: int) -> dict[str, Any]:
        """Times one block of calls."""
        assert self._stopwatch is not None
        with torch.no_grad():
            block = self._stopwatch.block(calls)
        return {
            "host_ns": [w.host_ns for w in block.windows],
            "event_ns": [w.event_ns for w in block.windows],
            "block_ns": block.block_ns,
        }
