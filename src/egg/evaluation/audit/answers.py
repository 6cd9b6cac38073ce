"""Trivial answers to one draw of a task: what a kernel could return that does none of the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

Leaves = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Answer:
    """One trivial answer: a value for every judged leaf."""

    name: str
    variant: str
    leaves: Leaves
    repeats: bool = False
    """True for a row mean of an output that is one value along that axis by construction: no flaw."""

    @property
    def key(self) -> str:
        """Tells the answers to one draw apart, and is the same for every draw."""
        return f"{self.name}|{self.variant}"


@dataclass(frozen=True)
class Material:
    """What trivial answers to one draw are made of."""

    right: Leaves
    """The judged leaves as the reference gave them."""
    inputs: Leaves
    """The tensors among the inputs, by the place that they have in the call."""
    earlier: Leaves
    """The judged leaves of another draw of the same kind, under the same weights."""
    other: Leaves | None
    """The judged leaves of this draw under other weights; None for a task without weights."""


def answers(material: Material) -> Iterator[Answer]:
    """Yields the trivial answers one by one, so that one at a time takes memory."""
    right = material.right
    yield Answer("zeros", "", {k: torch.zeros_like(v) for k, v in right.items()})
    if material.earlier.keys() == right.keys():
        yield Answer("constant", "", {k: _constant(material.earlier[k], v) for k, v in right.items()})
        yield Answer("stored output", "", material.earlier)
    for axis in range(max(v.dim() for v in right.values())):
        if any(_varies(v, axis) for v in right.values()):
            leaves = {k: _mean_along(v, axis) for k, v in right.items()}
            repeats = all(torch.equal(leaves[k], v) or not _varies(v, axis) for k, v in right.items())
            yield Answer("row mean", f"axis {axis}", leaves, repeats)
    for place, value in material.inputs.items():
        fitted = {k: _fitted(value, v) for k, v in right.items()}
        leaves = {k: v for k, v in fitted.items() if v is not None}
        if len(leaves) == len(right):
            yield Answer("passthrough", place, leaves)
    if material.other is not None:
        yield Answer("other weights", "", material.other)


def _constant(earlier: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Returns `right`'s shape filled with the mean of an earlier output, or with its most frequent value."""
    if earlier.numel() == 0:
        return torch.zeros_like(right)
    if earlier.is_floating_point() or earlier.is_complex():
        wide = torch.promote_types(earlier.dtype, torch.float64)
        finite = earlier[earlier.isfinite()] if not bool(earlier.isfinite().all()) else earlier
        value = finite.mean(dtype=wide) if finite.numel() else torch.zeros((), dtype=wide)
        return torch.full_like(right, value.item())
    return torch.full_like(right, earlier.flatten().long().mode().values.item())


def _varies(leaf: torch.Tensor, axis: int) -> bool:
    return leaf.dim() > axis and leaf.shape[axis] > 1


def _mean_along(leaf: torch.Tensor, axis: int) -> torch.Tensor:
    """Returns the leaf with each line along `axis` at its mean (its first value where it is discrete)."""
    if not _varies(leaf, axis):
        return leaf
    first = leaf.narrow(axis, 0, 1)
    if torch.equal(first.expand_as(leaf), leaf) or not (leaf.is_floating_point() or leaf.is_complex()):
        return first.expand_as(leaf)
    wide = torch.promote_types(leaf.dtype, torch.float64)
    return leaf.mean(axis, keepdim=True, dtype=wide).to(leaf.dtype).expand_as(leaf)


def _fitted(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor | None:
    """Returns an input in the shape and dtype of a leaf: itself, broadcast, reshaped or its first part; else None."""
    if value.numel() == 0:
        return None
    while value.dim() > like.dim() and value.numel() != like.numel():
        value = value[0] if value.shape[0] == 1 or value.shape[1:] == like.shape else value[..., 0]
    if value.numel() == like.numel():
        return value.reshape(like.shape).to(like.dtype)
    padded = value.reshape(*(1,) * (like.dim() - value.dim()), *value.shape)
    if any(have != want and have != 1 and have < want for have, want in zip(padded.shape, like.shape, strict=True)):
        return None
    for axis, want in enumerate(like.shape):
        if padded.shape[axis] > want:
            padded = padded.narrow(axis, 0, want)
    return padded.to(like.dtype).expand_as(like)
