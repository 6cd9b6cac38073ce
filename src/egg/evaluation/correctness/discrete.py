"""Right answers among indices: where several are equally good, any of them is right."""

from __future__ import annotations

from collections.abc import Sequence

import torch

_TIE_EPS = 4.0
"""Two values that differ by less than this many units of their dtype are a tie."""


def equally_good(candidate: torch.Tensor, reference: torch.Tensor, sources: Sequence[torch.Tensor]) -> bool:
    """Returns whether both index tensors pick the same values, along some dimension of one of the `sources`.

    That is what argmax, argmin, topk and sort return beside values: indices of ties may differ.
    """
    return any(
        _same_picks(candidate, reference, source, dim)
        for source in sources
        if source.is_floating_point()
        for dim in range(source.dim())
    )


def _same_picks(candidate: torch.Tensor, reference: torch.Tensor, source: torch.Tensor, dim: int) -> bool:
    ours, theirs = _as_index(candidate, source, dim), _as_index(reference, source, dim)
    if ours is None or theirs is None:
        return False
    got, wanted = source.gather(dim, ours), source.gather(dim, theirs)
    allowed = _TIE_EPS * torch.finfo(source.dtype).eps * wanted.abs()
    return bool(((got == wanted) | ((got - wanted).abs() <= allowed)).all())


def _as_index(index: torch.Tensor, source: torch.Tensor, dim: int) -> torch.Tensor | None:
    """Returns `index` in the form that `gather` takes, or None where it can't be one for this dimension."""
    if index.dtype is not torch.int64 or index.numel() == 0:
        return None
    if index.dim() == source.dim() - 1:
        index = index.unsqueeze(dim)
    if index.dim() != source.dim():
        return None
    if any(n != m for i, (n, m) in enumerate(zip(index.shape, source.shape, strict=True)) if i != dim):
        return None
    if int(index.min()) < 0 or int(index.max()) >= source.shape[dim]:
        return None
    return index
