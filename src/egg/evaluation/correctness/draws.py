"""New weights and new inputs for each trial, inside the task's domain."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from egg.evaluation.calls import Call
from egg.evaluation.tensors import map_tensors, own_copy, storage_of

_SCALES = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)


def redraw_state(module: nn.Module, seed: int) -> None:
    """Gives `module` other weights of the same kind, in place.

    A parameter or running statistic that is one constant (the ones and zeros of a fresh norm) gets a spread, so that
    a candidate that ignores it is found; a positive one stays positive. Any other parameter keeps its values in
    a rotated order. Other buffers (masks, tables, counters) keep their values.
    """
    generator = torch.Generator().manual_seed(seed)
    statistics = {k: b for k, b in module.named_buffers() if k.rpartition(".")[2] in ("running_mean", "running_var")}
    with torch.no_grad():
        for tensor in [*module.parameters(), *statistics.values()]:
            if tensor.is_floating_point() and tensor.numel() > 0:
                tensor.copy_(_redrawn(tensor, generator))


def _redrawn(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    first = tensor.flatten()[0].item()
    if not bool((tensor == first).all()):
        offset = int(torch.randint(1, tensor.numel(), (), generator=generator))
        return torch.roll(tensor.flatten(), offset).view(tensor.shape)
    if first == 0:
        return 0.1 * torch.randn(tensor.shape, generator=generator)
    return first * (0.5 + torch.rand(tensor.shape, generator=generator))


def scaled_inputs(call: Call, seed: int) -> Call | None:
    """Returns the inputs with floating tensors scaled and shifted, or None where none may be.

    Integers and booleans stay; so do tensors that look like masks or probabilities. What has no negative value keeps
    none.
    """
    generator = torch.Generator().manual_seed(seed)
    changed = 0

    def change(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        if not may_scale(tensor):
            return tensor
        changed += 1
        scale = _SCALES[int(torch.randint(len(_SCALES), (), generator=generator))]
        spread = tensor.double().std(correction=0).item()
        shift = (2 * torch.rand((), generator=generator).item() - 1) * spread
        if bool((tensor >= 0).all()):
            shift = abs(shift)
        copy = own_copy(tensor)
        memory = storage_of(copy)
        memory.copy_((memory.double() + shift) * scale)
        return copy

    result: Any = map_tensors(call, change)
    return result if changed else None


def signed_inputs(call: Call, seed: int) -> Call | None:
    """Returns the inputs with floating tensors drawn from normal distributions, or None where none may be.

    This leaves the range of a task that draws from (0, 1), where many functions are the identity or a constant.
    """
    generator = torch.Generator().manual_seed(seed)
    changed = 0

    def change(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        if not may_scale(tensor):
            return tensor
        changed += 1
        scale = 2.0 ** int(torch.randint(4, (), generator=generator))  # wide enough to leave (-1, 1) every time
        copy = own_copy(tensor)
        memory = storage_of(copy)
        memory.copy_(scale * torch.randn(memory.shape, generator=generator))
        return copy

    result: Any = map_tensors(call, change)
    return result if changed else None


def may_scale(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor stays in the task's domain when all of it is multiplied by one positive number."""
    if not tensor.is_floating_point() or tensor.numel() == 0 or not bool(torch.isfinite(tensor).all()):
        return False
    if bool(((tensor == 0) | (tensor == 1)).all()):
        return False
    if tensor.dim() == 0 or not bool((tensor >= 0).all()):
        return True
    sums = tensor.double().sum(-1)
    return not bool(((sums - 1).abs() < 1e-2).all())


def may_poke(tensor: torch.Tensor) -> bool:
    """Returns whether single elements may move towards zero; those of symmetric or sorted tensors may not."""
    if not may_scale(tensor):
        return False
    if tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2] and torch.equal(tensor, tensor.mT):
        return False
    return tensor.dim() == 0 or tensor.shape[-1] < 3 or not bool((tensor.diff(dim=-1) >= 0).all())
