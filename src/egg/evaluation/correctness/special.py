"""Values at the edge of what a dtype holds: a few elements set to them, or all."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from egg.evaluation.calls import Call
from egg.evaluation.correctness.domain import domain_of
from egg.evaluation.tensors import map_tensors, own_copy

_PLACES = 3
"""Elements of each input that are set."""
_SHRINK_TO_DENORMAL = {torch.float16: 2.0**-18, torch.bfloat16: 2.0**-130, torch.float32: 2.0**-133,
                       torch.float64: 2.0**-1040}  # fmt: skip
_INDEXING = (
    "index", "embedding", "gather", "scatter", "take", "nll_loss", "one_hot", "put", "bincount", "select", "repeat",
)  # fmt: skip


def with_specials(call: Call, values: str, seed: int) -> Call | None:
    """Returns the inputs with special values in them, or None where no input can hold them."""
    generator = torch.Generator().manual_seed(seed)
    changed = 0

    def change(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        if (made := _changed(tensor, values, generator)) is None:
            return tensor
        changed += 1
        return made

    result: Call = map_tensors(call, change)
    return result if changed else None


def _changed(tensor: torch.Tensor, values: str, generator: torch.Generator) -> torch.Tensor | None:
    if values == "extreme integers":
        return _extreme(tensor, generator) if _whole(tensor) else None
    domain = domain_of(tensor)
    if domain is None or domain.only_scaled or (domain.non_negative and values == "negative zero"):
        return None
    copy = own_copy(tensor)
    if values == "all equal":
        return copy.fill_(tensor.flatten()[0].item())
    if values == "denormal":
        copy.copy_((tensor.double() * _SHRINK_TO_DENORMAL[tensor.dtype]).to(tensor.dtype))
        return copy
    places = torch.randint(tensor.numel(), (_PLACES,), generator=generator)
    for i, place in enumerate(places.tolist()):
        _set(copy, place, _one(values, i, tensor.dtype, domain.non_negative))
    return copy


def _one(values: str, number: int, dtype: torch.dtype, non_negative: bool) -> float:
    sign = 1.0 if non_negative or number % 2 == 0 else -1.0
    match values:
        case "infinite":
            return sign * inf
        case "nan":
            return nan
        case "negative zero":
            return -0.0
        case _:
            return sign * torch.finfo(dtype).max


def _whole(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex()) and tensor.dtype is not torch.bool


def _extreme(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor | None:
    if tensor.numel() == 0:
        return None
    copy, info = own_copy(tensor), torch.iinfo(tensor.dtype)
    for i, place in enumerate(torch.randint(tensor.numel(), (_PLACES,), generator=generator).tolist()):
        _set(copy, place, info.max if i % 2 == 0 else info.min)
    return copy


def _set(tensor: torch.Tensor, place: int, value: float) -> None:
    index: list[int] = []
    for extent in reversed(tensor.shape):
        index.append(place % extent)
        place //= extent
    tensor[tuple(reversed(index))] = value


class IndexWatch(TorchDispatchMode):
    """Sees whether an operator takes integers for positions; an extreme one would then be out of bounds."""

    def __init__(self) -> None:
        super().__init__()
        self.indexes = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.indexes |= any(word in func.__name__ for word in _INDEXING)
        return func(*args, **(kwargs or {}))
