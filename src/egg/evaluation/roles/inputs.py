"""The inputs of timed calls: a pool that changes between blocks, and a change before each call that depends on the
output of the call before, so that no call can be answered early, together with others, or from memory."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch

from egg.evaluation.calls import Call
from egg.evaluation.correctness.draws import may_poke, may_scale
from egg.evaluation.roles.links import MIX, MODULUS
from egg.evaluation.tensors import map_tensors, own_copy, storage_of, walk
from egg.evaluation.workers.worker import Refusal

_FACTORS = (0.5, 0.625, 0.75, 0.875)
"""Towards zero, so that values stay in the domains that tasks have: positive ones, or those below one."""
_STRIDE = 61
"""Every so many elements are changed: a prime number, so that it meets every row and column."""
_SMALL_ELEMENTS, _SMALL_STRIDE = 4096, 3
_INTEGER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Inputs:
    """A pool of calls in memory of its own."""

    def __init__(self, calls: list[Call], place: Callable[[torch.Tensor], torch.Tensor] = own_copy) -> None:
        self._calls = [map_tensors(call, place) for call in calls]
        self._pokeable = [_floating(call, may_poke) for call in self._calls]
        self._scalable = [_floating(call, may_scale) for call in self._calls]

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def chained(self) -> bool:
        """True where a call's inputs can depend on the output before."""
        return all(self._pokeable)

    def entry(self, number: int) -> Call:
        """Returns the inputs of a call, by its number in the block."""
        return self._calls[number % len(self._calls)]

    def scale(self, factor: float) -> None:
        """Changes all values of the pool, where the domain of an input allows it."""
        for tensors in self._scalable:
            for tensor in tensors:
                storage_of(tensor).mul_(factor)

    @contextmanager
    def poked(self, number: int, link: int) -> Generator[Call]:
        """Yields the inputs of a call, changed as the link of the chain says, and puts them back afterwards."""
        kept: list[tuple[torch.Tensor, torch.Tensor]] = []
        for tensor in self._pokeable[number % len(self._calls)]:
            memory = storage_of(tensor)
            elements = memory.numel()
            stride = _STRIDE if elements >= _SMALL_ELEMENTS else min(_SMALL_STRIDE, elements)
            strip = memory[(link >> 8) % stride :: stride]
            kept.append((strip, strip.clone()))
            strip.mul_(_FACTORS[link % len(_FACTORS)])
        try:
            yield self.entry(number)
        finally:
            for strip, before in kept:
                strip.copy_(before)


def digest(output: Any) -> int:
    """Returns a number that depends on every byte of every tensor of an output. It waits for the device.

    Raises Refusal for a tensor that is none, such as one that computes itself when it is read.
    """
    total = 0
    for name, leaf in walk(output, "output"):
        if not isinstance(leaf, torch.Tensor):
            continue
        if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
            raise Refusal("rejected", f"{name} of a timed call is a {type(leaf).__name__}, not a plain torch.Tensor")
        if leaf.numel():
            bits = storage_of(leaf.detach())
            if bits.is_complex():
                bits = torch.view_as_real(bits).flatten()
            bits = bits.view(_INTEGER[bits.element_size()])
            total = (total * MIX + int(bits.sum(dtype=torch.int64).item())) % MODULUS
    return total


def _floating(call: Call, allowed: Callable[[torch.Tensor], bool]) -> list[torch.Tensor]:
    leaves = [leaf for _, leaf in walk(list(call), "call") if isinstance(leaf, torch.Tensor)]
    return [leaf for leaf in leaves if allowed(leaf)]
