"""Sizes of large tensors: each norm in one pass, with no copy of the tensor beside it."""

from __future__ import annotations

from math import isfinite

import torch


def finite_only(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Returns the tensor with zeros where it is not finite, itself where it is, and how many elements are finite."""
    if bool(torch.isfinite(torch.linalg.vector_norm(tensor, 1))):
        return tensor, tensor.numel()
    finite = tensor.isfinite()
    return torch.where(finite, tensor, 0.0), int(finite.sum())


def rms(tensor: torch.Tensor) -> float:
    """Returns the root of the mean square of the finite elements of a floating tensor; 0 where there is none."""
    if tensor.numel() and isfinite(norm := torch.linalg.vector_norm(tensor).item()):
        return norm / tensor.numel() ** 0.5
    kept, count = finite_only(tensor)
    return torch.linalg.vector_norm(kept).item() / count**0.5 if count else 0.0


def largest(tensor: torch.Tensor) -> float:
    """Returns the largest magnitude among the finite elements of a floating tensor; 0 where there is none."""
    kept, count = finite_only(tensor)
    return torch.linalg.vector_norm(kept, torch.inf).item() if count else 0.0
