"""One call under a known random state, with its gradients where they are asked for."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from egg.evaluation.tensors import map_tensors, walk

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of one call."""


def call_seeded(seed: int, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Returns the result of a call that starts with every random generator set from `seed`."""
    torch.manual_seed(seed)
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)
    return function(*args, **kwargs)


@dataclass(frozen=True)
class Projection:
    """A random direction in the outputs: the gradients of a call are those of the outputs' sum weighted by it."""

    seed: int
    dtypes: tuple[torch.dtype, ...]
    """Of the floating output leaves, in order; the weights are rounded to them, so that every dtype has the same."""

    def weights(self, outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Returns the weights of each output, in its dtype."""
        generator = torch.Generator().manual_seed(self.seed)
        drawn = [torch.randn(t.shape, generator=generator) for t in outputs]
        return [d.to(t.device, own).to(t.dtype) for d, t, own in zip(drawn, outputs, self.dtypes, strict=True)]


def projection_of(output: Any, seed: int) -> Projection:
    """Returns the projection for outputs of these dtypes."""
    return Projection(seed, tuple(t.dtype for t in _floating(output)))


def call_projected(
    seed: int, module: nn.Module, call: Call, projection: Projection | None
) -> tuple[Any, dict[str, torch.Tensor]]:
    """Returns the output of a seeded call, and its gradients by name (`gradient args[0]`, `gradient lin.weight`).

    Without a projection nothing is differentiated. A gradient that does not exist is left out.
    """
    if projection is None:
        with torch.no_grad():
            return call_seeded(seed, module, *call[0], **call[1]), {}
    output, wanted = call_recorded(seed, module, call)
    return detached(output), gradients_of(output, wanted, projection)


def call_recorded(seed: int, module: nn.Module, call: Call) -> tuple[Any, dict[str, torch.Tensor]]:
    """Returns the output of a seeded call that autograd recorded, and by name what it can be differentiated by."""
    with torch.enable_grad():
        args, kwargs = map_tensors(call, _recorded)
        output = call_seeded(seed, module, *args, **kwargs)
    leaves = [*walk(args, "args"), *walk(kwargs, "kwargs"), *module.named_parameters()]
    return output, {f"gradient {k}": v for k, v in leaves if isinstance(v, torch.Tensor) and v.requires_grad}


def gradients_of(output: Any, wanted: dict[str, torch.Tensor], projection: Projection) -> dict[str, torch.Tensor]:
    """Returns the gradients of the projected outputs, by name; those that do not exist are left out."""
    outputs = _floating(output)
    pairs = [(t, w) for t, w in zip(outputs, projection.weights(outputs), strict=True) if t.requires_grad]
    if not pairs or not wanted:
        return {}
    ends, weights = zip(*pairs, strict=True)
    found: Any = torch.autograd.grad(ends, list(wanted.values()), weights, allow_unused=True)
    return {k: g.detach() for k, g in zip(wanted, found, strict=True) if g is not None}


def detached(output: Any) -> Any:
    """Returns the structure with its tensors off the record."""
    return map_tensors(output, lambda t: t.detach())


def _recorded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().requires_grad_(tensor.is_floating_point() or tensor.is_complex())


def _floating(output: Any) -> list[torch.Tensor]:
    leaves = [v for _, v in walk(output, "output") if isinstance(v, torch.Tensor)]
    return [t for t in leaves if t.is_floating_point() or t.is_complex()]


@contextmanager
def one_thread() -> Generator[None]:
    """Keeps PyTorch to one thread: for house work on small tensors, where waking threads costs more than they save."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
