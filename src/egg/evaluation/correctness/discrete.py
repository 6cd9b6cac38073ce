"""Right answers among positions: where an operator chose by value, any choice of equal values is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from egg.evaluation.correctness import tolerance

_ALONG_DIM = {"argmax", "argmin", "max", "min", "topk", "sort", "kthvalue", "median", "nanmedian", "mode"}
_POOLING = {"max_pool2d_with_indices": 2, "adaptive_max_pool2d": 2, "max_pool3d_with_indices": 3,
            "adaptive_max_pool3d": 3, "fractional_max_pool2d": 2, "fractional_max_pool3d": 3}  # fmt: skip
"""Number of trailing dimensions that a position counts through."""


@dataclass(frozen=True)
class Choice:
    """One operator's choice of positions, and what it chose from."""

    operator: str
    source: torch.Tensor
    """The values in the reference's own arithmetic, in the form that `gather` takes along `dim`."""
    index: torch.Tensor
    """The positions in the form that `gather` takes."""
    dim: int
    distinct: bool
    """True where one position may be chosen once a row only: topk and sort."""
    stable: bool
    """True where equal values keep their order."""
    gold: torch.Tensor | None = None
    """The values in float64, where the oracle chose in the same place."""

    def on(self, device: str) -> Choice:
        """Returns the same choice in the memory of a device."""
        return replace(self, source=self.source.to(device), index=self.index.to(device))

    def fault(self, candidate: torch.Tensor) -> str | None:
        """Returns what is wrong with positions of the reference's shape; None where they are equally good."""
        index = candidate.long().reshape(self.index.shape)
        extent = self.source.shape[self.dim]
        if bool(((index < 0) | (index >= extent)).any()):
            return f"a position is outside of 0 to {extent - 1}"
        if self.distinct and bool((index.sort(self.dim).values.diff(dim=self.dim) == 0).any()):
            return "a position is chosen twice"
        gold = self.source.double() if self.gold is None else self.gold
        got, wanted = gold.gather(self.dim, index), gold.gather(self.dim, self.index)
        gap = torch.where(got == wanted, 0.0, (got - wanted).abs())  # equal infinities differ by nothing
        worse = (gap > self._allowed(wanted)) | (got.isnan() != wanted.isnan())
        if bool(worse.any()):
            at = int(worse.flatten().nonzero()[0])
            return (
                f"{int(worse.sum())} of {index.numel()} positions hold other values: the first "
                f"{got.flatten()[at].item():.9g}, expected {wanted.flatten()[at].item():.9g}"
            )
        if self.stable and bool(((got == wanted) & (index != self.index)).any()):
            return "equal values are not in their order, as a stable sort has them"
        return None

    def _allowed(self, wanted: torch.Tensor) -> torch.Tensor:
        """Returns how far two values may differ to be a tie: by the reference's own error in them."""
        unit = torch.finfo(self.source.dtype).eps if self.source.is_floating_point() else 0.0
        error = 0.0
        if self.gold is not None and self.source.is_floating_point():
            difference = (self.source.double() - self.gold).abs()
            finite = difference[difference.isfinite()]
            error = finite.max().item() if finite.numel() else 0.0
        if error == 0.0:
            return torch.zeros_like(wanted)  # an input as it is: only equal values are a tie
        return tolerance.TIE_FACTOR * torch.clamp(unit * wanted.abs(), min=error)


class ChoiceWatch(TorchDispatchMode):
    """Keeps every choice of positions that is made while a module runs."""

    def __init__(self) -> None:
        super().__init__()
        self.choices: list[Choice] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in _ALONG_DIM or name in _POOLING:
            named = {a.name: a.default_value for a in func._schema.arguments if a.has_default_value()}
            named |= dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | (kwargs or {})
            indices = [v for v in (result if isinstance(result, (tuple, list)) else [result]) if _positions(v)]
            if indices:
                self.choices.append(_choice(name, named, indices[-1]))
        return result


def choice_of(leaf: torch.Tensor, ours: Sequence[Choice], golds: Sequence[Choice]) -> Choice | None:
    """Returns the choice that an output leaf shows, with the oracle's values; None where it shows none."""
    for number, choice in enumerate(ours):
        if leaf.numel() == choice.index.numel() and torch.equal(leaf.long().flatten(), choice.index.flatten()):
            gold = golds[number] if number < len(golds) else None
            if gold is None or gold.operator != choice.operator or gold.source.shape != choice.source.shape:
                return choice
            return replace(choice, gold=gold.source.double())
    return None


def _positions(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype is torch.int64


def _choice(name: str, named: dict[str, Any], index: torch.Tensor) -> Choice:
    source: torch.Tensor = named["self"]
    index, dim = index.clone(), named.get("dim")
    if name in _POOLING:
        start = source.dim() - _POOLING[name]
        source, index, dim = source.flatten(start), index.flatten(start), start
    elif dim is None or source.dim() == 0:
        source, index, dim = source.flatten(), index.flatten(), 0
    else:
        dim %= source.dim()
        index = index.unsqueeze(dim) if index.dim() < source.dim() else index
    return Choice(name, source.clone(), index, dim, name in ("topk", "sort"), bool(named.get("stable")))
