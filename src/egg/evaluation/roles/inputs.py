"""The inputs of timed calls: a pool that changes between blocks, and a change of all of it before each call that
depends on the output of the call before, so that no call can be answered early, together with others, from memory, or
from what it has in common with another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from egg.evaluation.calls import Call
from egg.evaluation.correctness.draws import longest, may_poke, may_roll, may_scale
from egg.evaluation.roles.links import MIX, MODULUS
from egg.evaluation.tensors import map_tensors, own_copy, storage_of, walk
from egg.evaluation.workers.worker import Refusal

PERIOD = 32_749
"""Factors in the table that the elements of an input are multiplied by: a prime number, so that rows differ, and few
enough that PyTorch takes one thread for them. Two would wait for each other around calls of a few microseconds, where
a candidate's own threads are still awake."""
_LEAST_FACTOR = 0.5
"""Factors are from here to 1: towards zero, so that values stay in the domains of tasks, positive or below one."""
_STRIDE = 61
"""Where not all elements change, every so many do: a prime number, so that it meets every row and column."""
_INTEGER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Inputs:
    """A pool of calls, and for each of them memory of its own that holds what a call is given."""

    def __init__(
        self,
        calls: list[Call],
        place: Callable[[torch.Tensor], torch.Tensor] = own_copy,
        roll: bool = True,
        whole: bool = True,
    ) -> None:
        """Takes the calls of the pool.

        `roll` False leaves what may only move round where it is; `whole` False changes a strip of elements in place of
        all, for calls so short that they can gain nothing by looking which have changed.
        """
        self._whole = whole
        self._strips: dict[int, int] = {}
        self._calls = [map_tensors(call, place) for call in calls]
        self._given = [map_tensors(call, place) for call in calls]
        self._kinds = [[_kind(leaf, roll) for leaf in _tensors(call)] for call in self._calls]
        self._factors: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def whole(self) -> bool:
        """True where all elements change."""
        return self._whole

    @property
    def rolled(self) -> bool:
        """True where values of an input move round."""
        return any("places" in kinds for kinds in self._kinds)

    @property
    def chained(self) -> bool:
        """True where a call's inputs can depend on the output before."""
        return all(any(kinds) for kinds in self._kinds)

    def entry(self, number: int) -> Call:
        """Returns what a call was given last, by its number in the block."""
        return self._given[number % len(self._given)]

    def scale(self, factor: float) -> None:
        """Changes all values of the pool, where the domain of an input allows it."""
        for call, kinds in zip(self._calls, self._kinds, strict=True):
            for tensor, kind in zip(_tensors(call), kinds, strict=True):
                if kind in ("elements", "whole"):
                    storage_of(tensor).mul_(factor)
        for call, given in zip(self._calls, self._given, strict=True):
            for base, copy in zip(_tensors(call), _tensors(given), strict=True):
                if not self._whole and base.layout is torch.strided:
                    storage_of(copy).copy_(storage_of(base))

    def changed(self, number: int, link: int) -> Call:
        """Returns the inputs of a call, each changed in all its elements or places as the link of the chain says.

        They hold until the same number comes again; whatever a call did to them is undone then.
        """
        number %= len(self._calls)
        offset = (link >> 8) % PERIOD
        pairs = zip(_tensors(self._calls[number]), _tensors(self._given[number]), self._kinds[number], strict=True)
        for base, given, kind in pairs:
            if kind == "elements" and not self._whole:
                self._stripped(storage_of(base), storage_of(given), offset)
            elif kind == "elements":
                self._multiplied(storage_of(base), storage_of(given), offset)
            elif kind == "whole":
                factor = _LEAST_FACTOR + (1 - _LEAST_FACTOR) * offset / PERIOD
                torch.mul(storage_of(base), factor, out=storage_of(given))
            elif kind == "places":
                along = longest(base)
                given.copy_(base.roll(1 + (link >> 8) % (base.shape[along] - 1), along))
            elif base.layout is torch.strided:
                storage_of(given).copy_(storage_of(base))
        return self._given[number]

    def _stripped(self, base: torch.Tensor, given: torch.Tensor, offset: int) -> None:
        """Writes the elements of one strip times a factor, and puts back those of the strip before."""
        place = given.data_ptr()
        if (last := self._strips.get(place)) is not None:
            given[last::_STRIDE] = base[last::_STRIDE]
        self._strips[place] = strip = offset % _STRIDE
        factor = _LEAST_FACTOR + (1 - _LEAST_FACTOR) * offset / PERIOD
        torch.mul(base[strip::_STRIDE], factor, out=given[strip::_STRIDE])

    def _multiplied(self, base: torch.Tensor, given: torch.Tensor, offset: int) -> None:
        """Writes the elements of `base`, each times its factor of the table as it is read from `offset` on."""
        factors = self._table(base)[offset : offset + PERIOD]
        whole = base.numel() // PERIOD * PERIOD
        rows = base[:whole].view(-1, PERIOD), given[:whole].view(-1, PERIOD)
        if base.device.type == "cpu":
            for row, written in zip(*rows, strict=True):
                torch.mul(row, factors, out=written)
        elif whole:
            torch.mul(rows[0], factors, out=rows[1])
        torch.mul(base[whole:], factors[: base.numel() - whole], out=given[whole:])

    def _table(self, like: torch.Tensor) -> torch.Tensor:
        """Returns the factors twice in a row, the same in every process."""
        key = like.dtype, like.device
        if key not in self._factors:
            drawn = torch.rand(PERIOD, generator=torch.Generator().manual_seed(PERIOD), dtype=torch.float64)
            factors = _LEAST_FACTOR + (1 - _LEAST_FACTOR) * drawn
            self._factors[key] = torch.cat([factors, factors]).to(like.dtype).to(like.device)
        return self._factors[key]


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


def _tensors(call: Call) -> list[torch.Tensor]:
    return [leaf for _, leaf in walk(list(call), "call") if isinstance(leaf, torch.Tensor)]


def _kind(tensor: torch.Tensor, roll: bool) -> str:
    """Returns how a tensor may change: in its `elements`, as a `whole` by one factor, in its `places`, or not."""
    if may_poke(tensor):
        return "elements"
    if may_scale(tensor):
        return "whole"
    return "places" if roll and may_roll(tensor) else ""
