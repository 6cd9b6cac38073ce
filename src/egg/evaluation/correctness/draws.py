"""New weights and new values of inputs for each trial, inside the task's domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import nn

from egg.evaluation.calls import Call
from egg.evaluation.correctness.domain import Domain, domain_of, overlaps
from egg.evaluation.correctness.trials import DISTRIBUTIONS, SIGNED
from egg.evaluation.tensors import map_tensors, own_copy, storage_of, walk

Shape = tuple[int, ...]

_LARGEST_POWER = 6
"""Scales are powers of two from 2^-6 to 2^6."""
_OUTLIER = 1e4
"""Times the spread of the others."""
_SPARSE_SHARE = 0.1
_FEWEST_PLACES = 8
Change = Literal["elements", "whole", "places", ""]
LARGEST_INTEGER = 2
"""In the exact trial: small, so that long sums stay exact. Zero is not drawn, so that each term counts."""


def redraw_state(module: nn.Module, seed: int) -> None:
    """Gives `module` other weights of the same kind, in place.

    A parameter or running statistic that is one constant (the ones and zeros of a fresh norm) gets a spread, so that
    a candidate that ignores it is found; a positive one stays positive. Any other parameter keeps its values in
    a rotated order, times one factor: sums over it, or over its rows, would stay the same otherwise, and whoever
    kept them would pass. Other buffers (masks, tables, counters) keep their values.
    """
    with torch.no_grad():
        weights = _weights(module)
        generator = _generator(weights, seed)
        for tensor in weights:
            tensor.copy_(_redrawn(tensor, generator))


def integer_state(module: nn.Module, seed: int) -> None:
    """Gives `module` small whole numbers as weights, in place."""
    with torch.no_grad():
        weights = _weights(module)
        generator = _generator(weights, seed)
        for tensor in weights:
            tensor.copy_(_integers(tensor, generator))


def _generator(tensors: Sequence[torch.Tensor], seed: int) -> torch.Generator:
    """Returns a seeded generator on the device of the first tensor: gigabytes are drawn where they are wanted."""
    device = tensors[0].device if tensors else torch.device("cpu")
    return torch.Generator(device).manual_seed(seed)


def _normals(shape: Shape, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=generator, device=generator.device)


def _shares(shape: Shape, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(shape, generator=generator, device=generator.device)


def _whole(low: int, high: int, shape: Shape, generator: torch.Generator) -> torch.Tensor:
    """Returns whole numbers from `low` to below `high`, each in one byte."""
    return torch.randint(low, high, shape, generator=generator, device=generator.device, dtype=torch.int8)


def _one_of(low: int, high: int, generator: torch.Generator) -> int:
    return int(torch.randint(low, high, (), generator=generator, device=generator.device))


def _weights(module: nn.Module) -> list[torch.Tensor]:
    statistics = {k: b for k, b in module.named_buffers() if k.rpartition(".")[2] in ("running_mean", "running_var")}
    return [t for t in (*module.parameters(), *statistics.values()) if t.is_floating_point() and t.numel() > 0]


def _redrawn(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    first = tensor.flatten()[0].item()
    if not bool((tensor == first).all()):
        offset = _one_of(1, tensor.numel(), generator)
        factor = 0.75 + 0.5 * _shares((), generator)
        return factor * torch.roll(tensor.flatten(), offset).view(tensor.shape)
    if first == 0:
        return 0.1 * _normals(tensor.shape, generator)
    return first * (0.5 + _shares(tensor.shape, generator))


def redrawn_inputs(call: Call, values: str, seed: int, shrink: float = 1.0) -> Call | None:
    """Returns the inputs with floating tensors drawn anew, or None where none may be.

    `values` is one of `DISTRIBUTIONS`, `signed` or `integers`. Each tensor keeps its `Domain`; `shrink` makes all
    smaller.
    """
    generator = _generator([v for _, v in walk(list(call), "call") if isinstance(v, torch.Tensor)], seed)
    changed = 0

    def change(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        domain = domain_of(tensor)
        if domain is None or (domain.only_scaled and values != "scaled"):
            return tensor
        changed += 1
        if values == "scaled":
            return _scaled(tensor, domain, generator, shrink)
        drawn = _MAKERS[values](tensor, generator)
        if values not in (SIGNED, "binary", "integers"):
            drawn = drawn * (_scale(generator) * shrink)
        copy = own_copy(tensor)
        copy.copy_(drawn if values == SIGNED else domain.fitted(drawn.to(tensor.device)))
        return copy

    result: Any = map_tensors(call, change)
    return result if changed else None


def change_of(tensor: torch.Tensor) -> Change:
    """Returns how an input may change from call to call and stay in the task's domain.

    Each of its `elements` may move towards zero, or the `whole` of a symmetric or sorted one by one factor. Numbers
    whose values must stay, such as indices and probabilities, may change `places` along the longest dimension; masks,
    which say something by their form, and what rises or falls, such as offsets, may not.
    """
    domain = domain_of(tensor)
    if domain is not None:
        return "whole" if domain.ordered or domain.symmetric else "elements"
    return "places" if _may_move(tensor) else ""


def longest(tensor: torch.Tensor) -> int:
    """Returns the dimension of a tensor that has the most places."""
    return max(range(tensor.dim()), key=lambda d: tensor.shape[d])


def _may_move(tensor: torch.Tensor) -> bool:
    if tensor.dtype == torch.bool or tensor.is_complex() or tensor.dim() == 0:
        return False
    if max(tensor.shape) < _FEWEST_PLACES or overlaps(tensor) or bool(((tensor == 0) | (tensor == 1)).all()):
        return False
    steps = tensor.diff(dim=longest(tensor))
    return not bool((steps >= 0).all()) and not bool((steps <= 0).all())


def any_distribution(seed: int) -> str:
    """Returns the name of a distribution that hangs on the seed."""
    return DISTRIBUTIONS[1:][seed % (len(DISTRIBUTIONS) - 1)]


def _scaled(tensor: torch.Tensor, domain: Domain, generator: torch.Generator, shrink: float) -> torch.Tensor:
    """Returns the tensor's own values shifted by up to their spread, and scaled; what hangs together only scaled."""
    shift = (2 * _shares((), generator).item() - 1) * _spread(tensor)
    if domain.non_negative:
        shift = abs(shift)
    if domain.only_scaled:
        shift = 0.0
    copy = own_copy(tensor)
    memory = storage_of(copy)
    memory.copy_(memory.double().add_(shift).mul_(_scale(generator) * shrink))
    if domain.non_zero is not None and not domain.only_scaled:
        copy.copy_(domain.fitted(copy))
    return copy


def _scale(generator: torch.Generator) -> float:
    power = _one_of(-_LARGEST_POWER, _LARGEST_POWER + 1, generator)
    return 2.0 ** (power or 1)


def _spread(tensor: torch.Tensor) -> float:
    return tensor.double().std(correction=0).item()


def _normal(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return _normals(tensor.shape, generator) + _normals((), generator)


def _signed(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    scale = 2.0 ** _one_of(0, 4, generator)  # wide enough to leave (-1, 1) every time
    return scale * _normals(tensor.shape, generator)


def _uniform(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return 2 * _shares(tensor.shape, generator) - 1


def _sparse(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    kept = _shares(tensor.shape, generator) < _SPARSE_SHARE
    return torch.where(kept, _normals(tensor.shape, generator), 0.0)


def _constant_rows(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    rows = _normals((*tensor.shape[:-1], 1), generator)
    return rows.expand(tensor.shape)


def _with_outlier(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    drawn = _normals(tensor.shape, generator)
    drawn.view(-1)[_one_of(0, drawn.numel(), generator)] = _OUTLIER
    return drawn


def _sorted(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return _normals(tensor.shape, generator).sort(-1).values


def _binary(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return _whole(0, 2, tensor.shape, generator).float()


def _integers(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    largest = LARGEST_INTEGER if tensor.dtype in (torch.float32, torch.float64) else 1
    sizes = _whole(1, largest + 1, tensor.shape, generator)
    return (sizes * (2 * _whole(0, 2, tensor.shape, generator) - 1)).float()


_MAKERS: dict[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "normal": _normal,
    SIGNED: _signed,
    "uniform": _uniform,
    "sparse": _sparse,
    "constant rows": _constant_rows,
    "outlier": _with_outlier,
    "sorted": _sorted,
    "binary": _binary,
    "integers": _integers,
}
