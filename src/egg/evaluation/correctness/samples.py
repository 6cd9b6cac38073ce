"""Compares elements of a timed output with the reference's: coarser than the oracle, far finer than skipped work."""

from __future__ import annotations

import torch

from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.dtypes import name_of, real_of


def sample_mismatch(
    candidate: torch.Tensor, reference: torch.Tensor, relative_error: float, absolute_error: float
) -> str | None:
    """Returns how elements differ from the reference's on the same inputs; None where they agree.

    The errors are the reference's own in the checks, the absolute one for a few elements that may nearly cancel. Both
    tensors have one dtype and shape.
    """
    if candidate.numel() == 0:
        return None
    if not (candidate.is_floating_point() or candidate.is_complex()):
        unequal = (candidate != reference).double().mean().item()
        most = tolerance.SAMPLED_UNEQUAL_SHARE
        return f"{100 * unequal:.3g} % of the elements are unequal" if unequal > most else None
    wide = torch.promote_types(candidate.dtype, torch.float64)
    mine, theirs = candidate.to(wide), reference.to(wide)
    finite = theirs.isfinite()
    if not bool((mine.isfinite() == finite).all()):
        return "other elements are infinite or NaN than in the reference's output"
    if not bool(finite.any()):
        return None
    real = real_of(candidate.dtype)
    difference = (mine - theirs)[finite].abs().square().mean().sqrt().item()
    size = theirs[finite].abs().square().mean().sqrt().item()
    unit = max(relative_error, torch.finfo(real).eps)
    name = name_of(real)
    limits = tolerance.limits_for(name, candidate.numel())
    least = absolute_error if candidate.numel() < tolerance.SMALL_ELEMENTS else 0.0
    least = max(least, tolerance.flushed_below(name))
    allowed = tolerance.SAMPLED_FACTOR * limits.rms * max(unit * size, least)
    if difference > allowed:
        return f"elements differ from the reference's by {difference:.3g} (rms) of {size:.3g}; {allowed:.3g} is allowed"
    return None
