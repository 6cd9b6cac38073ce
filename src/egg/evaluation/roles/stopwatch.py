"""What both workers do when calls are timed; the same code for candidate and reference."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns, sleep  # bound now, before a candidate could replace them
from typing import Any

import torch

from egg.evaluation.calls import Call
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


class Stopwatch:
    """Calls one function on a rotating pool of inputs and reads the monotonic clock around each call."""

    def __init__(self, function: Callable[..., Any], pool: list[Call], fresh_inputs: bool) -> None:
        self._function = function
        self._pool = [map_tensors(call, own_copy) for call in pool]
        self._fresh_inputs = fresh_inputs
        self._next = 0
        self._discarded = DISCARDED_CALLS

    def warm_up(self, limit_s: float, min_calls: int, min_s: float) -> tuple[int, float]:
        """Returns calls made and the median of the last ones in seconds, once they agree or the limit is reached."""
        started = perf_counter_ns()
        times: list[float] = []
        while True:
            times.append(self._one_call() / 1e9)
            spent = (perf_counter_ns() - started) / 1e9
            last = times[-_STABLE_CALLS:]
            steady = len(last) == _STABLE_CALLS and max(last) <= (1 + _STABLE_WITHIN) * min(last)
            if spent >= limit_s or (steady and len(times) >= min_calls and spent >= min_s):
                break
        typical = sorted(last)[len(last) // 2]
        if typical > _SLOW_CALL_S:
            self._discarded = 0 if typical > _LONG_CALL_S else 1
        return len(times), typical

    def block(self, calls: int) -> tuple[list[int], int]:
        """Returns nanoseconds of each of `calls` calls, and of the whole block with its discarded calls."""
        started = perf_counter_ns()
        sleep(HAND_OVER_S)
        for _ in range(self._discarded):
            self._one_call()
        times = [self._one_call() for _ in range(calls)]
        return times, perf_counter_ns() - started

    def _one_call(self) -> int:
        args, kwargs = self._pool[self._next]
        self._next = (self._next + 1) % len(self._pool)
        if self._fresh_inputs:
            args, kwargs = map_tensors((args, kwargs), own_copy)
        clock, function = perf_counter_ns, self._function
        started = clock()
        result = function(*args, **kwargs)
        ended = clock()
        del result  # freed outside the window, for both legs
        return ended - started


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
            times_ns, block_ns = self._stopwatch.block(calls)
        return {"times_ns": times_ns, "block_ns": block_ns}
