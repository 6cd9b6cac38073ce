"""The inputs of timed calls: a pool that changes between blocks, and a change of all of it before each call that
depends on the output of the call before, so that no call can be answered early, together with others, from memory, or
from what it has in common with another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from math import gcd
from typing import Any

import torch

from egg.evaluation.calls import Call
from egg.evaluation.correctness.draws import change_of, longest
from egg.evaluation.roles.links import MIX, MODULUS
from egg.evaluation.tensors import map_tensors, own_copy, storage_of, walk
from egg.evaluation.workers.faults import Refusal

PERIOD = 32_749
"""Factors in the table that the elements of an input are multiplied by: a prime number, so that rows differ, and few
enough that PyTorch takes one thread for them. Two would wait for each other around calls of a few microseconds, where
a candidate's own threads are still awake."""
_LEAST_FACTOR = 0.5
"""Factors are from here to 1: towards zero, so that values stay in the domains of tasks, positive or below one."""
_STRIDE = 61
"""Where not all elements change, every so many do: a prime number, so that it meets every row and column."""
_STEPS = 64
"""Orders, up to where they start, in which numbers that change places may come."""
_INTEGER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Inputs:
    """A pool of calls, and for each of them memory of its own that holds what a call is given."""

    def __init__(self, calls: list[Call], place: Callable[[torch.Tensor], torch.Tensor] = own_copy) -> None:
        self._calls = [map_tensors(call, place) for call in calls]
        self._given = [map_tensors(call, place) for call in calls]
        self._kinds: list[list[str]] = [[change_of(leaf) for leaf in _tensors(call)] for call in self._calls]
        self._strips: dict[int, int] = {}
        self._factors: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def rolled(self) -> bool:
        """True where values of an input move round."""
        return any("places" in kinds for kinds in self._kinds)

    @property
    def chained(self) -> bool:
        """True where a call's inputs can depend on the output before."""
        return all(any(kinds) for kinds in self._kinds)

    @property
    def varieties(self) -> int:
        """How many different inputs all calls can be given together, those of a call that can't change counted once.

        Other values that `scale` gives are not counted.
        """
        return sum(
            max((_varieties(base, kind) for base, _, kind in self._tensors_of(n)), default=1) for n in range(len(self))
        )

    def entry(self, number: int) -> Call:
        """Returns what a call was given last, by its number in the block."""
        return self._given[number % len(self._given)]

    def restrict(self, roll: bool, whole: bool) -> None:
        """Changes less from now on.

        Without `roll`, what may only move round stays where it is. Without `whole` a strip of elements changes in place
        of all, for calls so short that they can gain nothing by looking which have changed.
        """
        less = {} if roll else {"places": ""}
        less |= {} if whole else {"elements": "strip"}
        self._kinds = [[less.get(kind, kind) for kind in kinds] for kinds in self._kinds]
        self._renew()

    def scale(self, factor: float) -> None:
        """Changes all values of the pool, where the domain of an input allows it."""
        for base, _, kind in self._all():
            if kind in ("elements", "strip", "whole"):
                storage_of(base).mul_(factor)
        self._renew()

    def changed(self, number: int, link: int) -> Call:
        """Returns the inputs of a call, changed as the link of the chain says.

        They hold until the same number comes again. What a call did to them is undone then, but outside of strips.
        """
        number %= len(self._calls)
        offset = (link >> 8) % PERIOD
        factor = _LEAST_FACTOR + (1 - _LEAST_FACTOR) * offset / PERIOD
        for base, given, kind in self._tensors_of(number):
            match kind:
                case "elements":
                    self._multiplied(storage_of(base), storage_of(given), offset)
                case "strip":
                    self._stripped(storage_of(base), storage_of(given), offset % _STRIDE, factor)
                case "whole":
                    torch.mul(storage_of(base), factor, out=storage_of(given))
                case "places":
                    along = longest(base)
                    given.copy_(base.index_select(along, _order(base.shape[along], link >> 8, base.device)))
                case _:
                    _copy(base, given)
        return self._given[number]

    def _tensors_of(self, number: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, str]]:
        """Yields each tensor of a call as it is kept and as it is given, and how it changes."""
        tensors = _tensors(self._calls[number]), _tensors(self._given[number])
        yield from zip(*tensors, self._kinds[number], strict=True)

    def _all(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, str]]:
        for number in range(len(self._calls)):
            yield from self._tensors_of(number)

    def _renew(self) -> None:
        """Puts everything back that is given with no more than a strip changed."""
        self._strips = {}
        for base, given, kind in self._all():
            if kind == "strip":
                _copy(base, given)

    def _stripped(self, base: torch.Tensor, given: torch.Tensor, strip: int, factor: float) -> None:
        """Writes the elements of one strip times a factor, and puts back those of the strip before."""
        place = given.data_ptr()
        if (last := self._strips.get(place)) is not None:
            given[last::_STRIDE] = base[last::_STRIDE]
        self._strips[place] = strip
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
            total = (total * MIX + _sum_of_bits(storage_of(leaf.detach()))) % MODULUS
    return total


def _sum_of_bits(flat: torch.Tensor) -> int:
    """Returns the sum of a tensor's bits, taken as integers of eight bytes where these go in without rest."""
    if flat.is_complex():
        flat = torch.view_as_real(flat).flatten()
    size = flat.element_size()
    if flat.numel() * size % 8 == 0:
        flat, size = flat if flat.data_ptr() % 8 == 0 and flat.storage_offset() * size % 8 == 0 else flat.clone(), 8
    return int(flat.view(_INTEGER[size]).sum(dtype=torch.int64).item())


def _tensors(call: Call) -> list[torch.Tensor]:
    return [leaf for _, leaf in walk(list(call), "call") if isinstance(leaf, torch.Tensor)]


def _varieties(base: torch.Tensor, kind: str) -> int:
    """Returns how many different tensors one that changes in this way can become."""
    if kind == "places":
        size = base.shape[longest(base)]
        return size * len(_steps(size))
    return PERIOD if kind else 1


def _order(size: int, link: int, device: torch.device) -> torch.Tensor:
    """Returns the places 0 to size - 1 in another order, which the link chooses: by equal steps, from a start on."""
    steps = _steps(size)
    step = steps[link // size % len(steps)]
    return (torch.arange(size, device=device) * step + link % size) % size


@cache
def _steps(size: int) -> tuple[int, ...]:
    """Returns some of the steps above one that meet each of `size` places once; `size` is 3 or more."""
    return tuple(islice((step for step in range(2, size) if gcd(step, size) == 1), _STEPS))


def _copy(base: torch.Tensor, given: torch.Tensor) -> None:
    if base.layout is torch.strided:
        storage_of(given).copy_(storage_of(base))
