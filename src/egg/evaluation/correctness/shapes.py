"""Other shapes of the same inputs: sizes that are equal are taken for one size, and change together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import torch

from egg.evaluation.calls import Call
from egg.evaluation.correctness.domain import domain_of
from egg.evaluation.tensors import map_tensors, walk

Accepts = Callable[[Call], bool]
_PAST = 2**31
_COPIES, _WIDE_COPIES = 6, 6
"""What a trial holds at once of each element: inputs, outputs and the candidate's of both in the task's dtype; oracle,
errors and what the comparison makes of them in float64."""


class TooLarge(Exception):
    """Inputs of a size take more memory than there is; the message says how much."""


def reshaped(first: Call, second: Call, shape: str, accepts: Accepts) -> Call | None:
    """Returns inputs of other sizes that the reference accepts, or None; `second` is another draw, for more rows.

    Raises TooLarge where a size past 2^31 needs more memory than there is.
    """
    batch = _batch(first)
    if batch is None:
        return None
    match shape:
        case "batch 1":
            return _accepted(_resized(first, second, {batch: 1}, batch_only=True), accepts) if batch > 1 else None
        case "batch + 1":
            return _accepted(_resized(first, second, {batch: batch + 1}, batch_only=True), accepts)
        case "empty":
            return _accepted(_resized(first, second, {batch: 0}, batch_only=True), accepts)
        case "large":
            return _large(first, second, batch, accepts)
        case _:
            return _odd(first, second, accepts)


def _large(first: Call, second: Call, batch: int, accepts: Accepts) -> Call | None:
    """Returns inputs of which the largest has more than 2^31 elements, or bytes where memory allows no more."""
    largest = max((t for t in _tensors(first) if t.shape[:1] == (batch,)), key=lambda t: t.numel())
    if largest.numel() == 0:
        return None
    free = free_bytes(largest.device.type)
    sizes = (_PAST, _PAST // largest.element_size())
    needed = [n * (_COPIES * largest.element_size() + _WIDE_COPIES * torch.float64.itemsize) for n in sizes]
    fitting = [n for n, takes in zip(sizes, needed, strict=True) if takes <= free]
    if not fitting:
        raise TooLarge(f"it takes about {needed[-1] / 2**30:.3g} GiB of memory, and {free / 2**30:.3g} GiB are free")
    rows = fitting[0] // (largest.numel() // batch) + 1
    return _accepted(_resized(first, second, {batch: rows}, batch_only=True), accepts)


def free_bytes(device: str) -> int:
    """Returns the memory that is free: of the GPU, or of the machine and of the disk that tensors travel over."""
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    memory = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(memory, shutil.disk_usage(".").free)


def _odd(first: Call, second: Call, accepts: Accepts) -> Call | None:
    """Returns inputs with as many sizes as the reference allows at the prime below each."""
    sizes = {n for t in _tensors(first) for n in t.shape[1:] if n > 2}
    primes = {n: p for n in sizes if (p := _prime_below(n)) != n}
    if not primes:
        return None
    everything = _accepted(_resized(first, second, primes), accepts)
    if everything is not None or len(primes) < 2:
        return everything
    taken = {n: p for n, p in primes.items() if _accepted(_resized(first, second, {n: p}), accepts) is not None}
    if not taken:
        return None
    together = _accepted(_resized(first, second, taken), accepts)
    return together if together is not None else _resized(first, second, dict([next(iter(taken.items()))]))


def _accepted(call: Call, accepts: Accepts) -> Call | None:
    return call if accepts(call) else None


def _batch(call: Call) -> int | None:
    sizes = [t.shape[0] for t in _tensors(call) if t.dim() > 0]
    return sizes[0] if sizes and sizes[0] > 0 else None


def _tensors(call: Call) -> list[torch.Tensor]:
    return [v for _, v in walk(list(call), "call") if isinstance(v, torch.Tensor)]


def _resized(first: Call, second: Call, sizes: dict[int, int], batch_only: bool = False) -> Call:
    """Returns the inputs with each size that is a key at its value; more rows come from `second`, then repeat."""
    more = iter(_tensors(second))

    def change(tensor: torch.Tensor) -> torch.Tensor:
        other = next(more)
        for dim in range(min(tensor.dim(), 1) if batch_only else tensor.dim()):
            if (wanted := sizes.get(tensor.shape[dim])) is None:
                continue
            if dim == tensor.dim() - 1 and dim > 0 and tensor.is_floating_point() and domain_of(tensor) is None:
                continue  # a mask or probabilities, whose rows hang together
            have = tensor.shape[dim]
            pieces = [tensor, other] if other.shape == tensor.shape and wanted > have else [tensor]
            rows = torch.cat(pieces, dim)
            tensor = rows.index_select(dim, torch.arange(wanted, device=rows.device) % rows.shape[dim])
            other = tensor
        return tensor

    return map_tensors(first, change)


def _prime_below(n: int) -> int:
    while n > 2 and any(n % k == 0 for k in range(2, int(n**0.5) + 1)):
        n -= 1
    return n
