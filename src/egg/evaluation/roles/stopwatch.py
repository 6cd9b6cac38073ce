"""What both workers do when calls are timed; the same code for candidate and reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from egg.evaluation.calls import call_seeded
from egg.evaluation.devices.backend import Backend, Window
from egg.evaluation.roles.inputs import Inputs, digest
from egg.evaluation.roles.links import next_link
from egg.evaluation.tensors import map_tensors, own_copy, span, walk

HAND_OVER_S = 0.0025
"""Pause before a block, in which the other worker's OpenMP threads stop to spin."""
DISCARDED_CALLS = 3
"""Calls before a block that are not counted: one for slow calls, none for calls so long that no start matters."""
_LONG_CALL_S = 0.1
_STABLE_CALLS = 5
_STABLE_WITHIN = 0.10


@dataclass(frozen=True)
class Warmth:
    """What a warm-up found."""

    calls: int
    typical_s: float
    """Median of the last calls."""
    cycle_s: float
    """The same with what the harness does around a call: inputs, flush, digest."""
    output_bytes: int
    stable: bool
    """False where the last calls still differed when the time was over."""


@dataclass(frozen=True)
class Called:
    """One call of a block: its time, the link that decided its inputs, and the digest of its output."""

    window: Window
    link: int
    digest: int


class Stopwatch:
    """Calls one function on inputs that depend on the output before, and times each call with flushed caches."""

    def __init__(
        self,
        device: Backend,
        function: Callable[..., Any],
        inputs: Inputs,
        fresh_inputs: bool = False,
        seeded: bool = False,
    ) -> None:
        self.inputs = inputs
        self.held: list[Any] = []
        """Outputs of the last block that asked for it, until they are released."""
        self._device = device
        self._function = function
        self._fresh_inputs = fresh_inputs
        self._seeded = seeded
        self._discarded = DISCARDED_CALLS
        self._spare: Any = None
        self._link = 1
        self._number = 0

    def warm_up(self, limit_s: float, min_calls: int, min_s: float, quiet: Callable[[], object]) -> Warmth:
        """Calls until the last times agree and `quiet()` (builds and modules so far) has stopped to change."""
        clock = self._device.clock_ns
        started = clock()
        times: list[float] = []
        cycles: list[float] = []
        seen = quiet()
        while True:
            before = clock()
            times.append(self._next().host_ns / 1e9)
            cycles.append((clock() - before) / 1e9)
            spent = (clock() - started) / 1e9
            last = times[-_STABLE_CALLS:]
            steady = len(last) == _STABLE_CALLS and max(last) <= (1 + _STABLE_WITHIN) * min(last)
            if spent >= limit_s:
                break
            if steady and len(times) >= min_calls and spent >= min_s:
                if (now := quiet()) == seen:
                    break
                seen, times, cycles = now, [], []
        typical = _middle(last)
        if typical > self._device.slow_call_s:
            self._discarded = 0 if typical > _LONG_CALL_S else 1
        return Warmth(len(times), typical, _middle(cycles[-_STABLE_CALLS:]), _nbytes(self._spare), steady)

    def hand_over(self) -> None:
        """Lets the other worker come to rest, and this one come back: calls that nobody counts."""
        self._device.sleep(HAND_OVER_S)
        for _ in range(self._discarded):
            self._next()

    def block(self, calls: int, link: int, hold: bool = False) -> list[Called]:
        """Returns `calls` calls in turn, the first with the inputs that `link` decides; `hold` keeps their outputs."""
        return self._block(self._function, calls, link, hold)

    def empty_block(self, calls: int, link: int, hold: bool = False) -> list[Called]:
        """Returns a block in which the function does nothing but hand out an output that it already had."""
        spare = self._spare
        return self._block(lambda *args, **kwargs: spare, calls, link, hold)

    def call(self, number: int, link: int) -> Any:
        """Returns the output of the call that has this number and link in a block; nobody counts it."""
        args, kwargs = self._arguments(number, link)
        result = self._run(self._function, link, args, kwargs)[0]
        self._device.join()
        return result

    def replayed_ns(self, calls: int) -> int | None:
        """Returns the median of a call replayed from a graph, on the first inputs; None where that does not work."""
        args, kwargs = map_tensors(self.inputs.entry(0), own_copy)
        return self._device.replayed_ns(self._function, args, kwargs, calls)

    def release(self) -> None:
        """Lets go of the outputs that were held."""
        self.held = []

    def _block(self, function: Callable[..., Any], calls: int, link: int, hold: bool) -> list[Called]:
        self.held = []
        called: list[Called] = []
        for number in range(calls):
            output, window, mark = self._one(function, number, link)
            if hold:
                self.held.append(output)
            del output  # freed outside the window, for both legs
            called.append(Called(window, link, mark))
            link = next_link(link, mark)
        return called

    def _next(self) -> Window:
        """Makes a call that nobody counts, on the inputs whose turn it is."""
        output, window, mark = self._one(self._function, self._number, self._link)
        self._number, self._link, self._spare = self._number + 1, next_link(self._link, mark), output
        return window

    def _one(self, function: Callable[..., Any], number: int, link: int) -> tuple[Any, Window, int]:
        args, kwargs = self._arguments(number, link)
        self._device.flush()
        output, window = self._run(function, link, args, kwargs)
        return output, window, digest(output)

    def _arguments(self, number: int, link: int) -> Any:
        given = self.inputs.changed(number, link)
        return map_tensors(given, own_copy) if self._fresh_inputs else given

    def _run(self, function: Callable[..., Any], link: int, args: Any, kwargs: Any) -> tuple[Any, Window]:
        if self._seeded:
            return call_seeded(link % 2**32, self._device.window, function, args, kwargs)
        return self._device.window(function, args, kwargs)


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _nbytes(output: Any) -> int:
    tensors = [leaf for _, leaf in walk(output, "output") if isinstance(leaf, torch.Tensor)]
    return sum(span(list(t.shape), list(t.stride())) * t.element_size() for t in tensors)
