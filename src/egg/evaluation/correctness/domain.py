"""What an input may be: seen in the values of the task's own draw, and kept by every other draw."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import torch

from egg.evaluation.tensors import span

_START = 16
"""Elements of each row that are looked at before all are."""
_MANY_ZEROS = 0.05
"""Share of exact zeros above which they are taken for structure: a triangle, a mask that was multiplied in."""


@dataclass(frozen=True)
class Domain:
    """What every draw of one floating input keeps."""

    non_negative: bool
    non_zero: torch.Tensor | None
    """True where values may be other than zero; None where all may."""
    ordered: bool
    """True where each row rises."""
    only_scaled: bool
    """True where the values hang together (a symmetric matrix, memory that overlaps, a scalar): only a common factor
    leaves them what they are."""

    symmetric: bool

    def fitted(self, values: torch.Tensor) -> torch.Tensor:
        """Returns `values` made to fit."""
        if self.non_negative:
            values = values.abs()
        if self.ordered:
            values = values.sort(-1).values
        return values if self.non_zero is None else torch.where(self.non_zero, values, 0.0)


def domain_of(tensor: torch.Tensor) -> Domain | None:
    """Returns the domain of an input; None for one that stays as it is.

    Integers, booleans, masks of zeros and ones, probabilities and what is not finite stay. Complex tensors stay too.
    """
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return None
    least, most = (extreme.item() for extreme in tensor.aminmax())  # NaN where one is among the values
    if not (isfinite(least) and isfinite(most)):
        return None
    if tensor.numel() > 1 and least == 0 and most in (0, 1) and bool(((tensor == 0) | (tensor == 1)).all()):
        return None
    non_negative = least >= 0
    if tensor.dim() > 0 and tensor.shape[-1] > 1 and non_negative:
        sums = tensor.sum(-1, dtype=torch.float64)
        if bool(((sums - 1).abs() < 1e-2).all()):
            return None
    symmetric = _symmetric(tensor)
    structured = tensor.numel() - int(tensor.count_nonzero()) > _MANY_ZEROS * tensor.numel()
    return Domain(
        non_negative=non_negative,
        non_zero=tensor != 0 if structured else None,
        ordered=_rises(tensor),
        only_scaled=overlaps(tensor) or tensor.dim() == 0 or symmetric,
        symmetric=symmetric,
    )


def overlaps(tensor: torch.Tensor) -> bool:
    """Returns whether places of a tensor share memory, as those of an expanded one do."""
    return span(list(tensor.shape), list(tensor.stride())) < tensor.numel()


def _rises(tensor: torch.Tensor) -> bool:
    if tensor.dim() == 0 or tensor.shape[-1] <= 2:
        return False
    start = tensor[..., :_START]  # enough to tell most that do not rise
    return all(bool((part.diff(dim=-1) >= 0).all()) for part in (start, tensor)) and not _flat(tensor)


def _flat(tensor: torch.Tensor) -> bool:
    return bool((tensor == tensor.flatten()[0]).all())


def _symmetric(tensor: torch.Tensor) -> bool:
    square = tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2] and tensor.shape[-1] > 1
    return square and not _flat(tensor) and bool(torch.equal(tensor, tensor.mT))
