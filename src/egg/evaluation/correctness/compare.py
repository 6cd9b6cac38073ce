"""Holds what a candidate gave against what the reference gives, leaf by leaf, under `tolerance.py`."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod, sqrt
from typing import Any

import torch

from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.discrete import Choice
from egg.evaluation.correctness.dtypes import name_of
from egg.evaluation.correctness.ratios import Ratios
from egg.evaluation.tensors import walk


@dataclass(frozen=True)
class Mismatch:
    """A fault that needs no arithmetic."""

    status: str
    message: str


@dataclass(frozen=True)
class Expected:
    """One expected leaf: the reference's value, the oracle's, and the reference's error in float64.

    A leaf that is not floating has no error; the oracle's value is then a second right answer.
    """

    value: Any
    gold: torch.Tensor | None = None
    error: torch.Tensor | None = None
    factor: float = 1.0
    """Widens the floor where there is no oracle."""
    error_rms: float = 0.0
    """The least rms error of the reference to assume."""
    error_max: float = 0.0
    """The least largest error of the reference to assume."""
    limits: tolerance.Limits | None = None
    """None for those of `strict`."""
    close: float | None = None
    """Absolute and relative tolerance in place of all others, where the policy has one."""
    choice: Choice | None = None
    """What the leaf is a choice of positions from."""
    exact: bool = False
    """True where whole numbers go in and come out: half a unit off is a term too many or too few."""
    infinite: bool = False
    """True where infinities or numbers near them go in: infinity less infinity is NaN in one order of operations, and
    an infinity in another that is as right, so either will do where NaN is expected."""
    oracle: bool = True
    """False where no oracle ran, or it computed something else."""
    note: str = ""
    """What a reader should know about the allowance."""


@dataclass(frozen=True)
class Measured:
    """The ratios of one leaf with its limits; as `schema.evaluation.LeafCheck`."""

    leaf: str
    ratio_rms: float
    ratio_max: float
    limit_rms: float
    limit_max: float
    worst: str
    elements: int
    by_distribution: bool = False
    """True where the values are random, and not compared one by one."""

    @property
    def passed(self) -> bool:
        """True within both limits."""
        return self.excess <= 1.0

    @property
    def excess(self) -> float:
        """The larger of the two ratios over its limit; 0 where both are 0."""
        if self.ratio_rms == self.ratio_max == 0:
            return 0.0
        return max(self.ratio_rms / self.limit_rms, self.ratio_max / self.limit_max)

    def miss(self) -> Mismatch:
        """Returns the fault of a leaf beyond its limits."""
        return Mismatch(
            "WRONG_VALUE",
            f"{self.leaf}: error ratio rms {self.ratio_rms:.3g} (limit {self.limit_rms:g}), "
            f"largest {self.ratio_max:.3g} (limit {self.limit_max:g}); {self.worst}",
        )


def structure_mismatch(candidate: Any, reference: Any) -> Mismatch | None:
    """Returns how two outputs differ in structure, type, dtype or shape; None where they do not."""
    got, want = list(walk(candidate, "output")), list(walk(reference, "output"))
    if [name for name, _ in got] != [name for name, _ in want]:
        names = [", ".join(name for name, _ in side) or "nothing" for side in (got, want)]
        return Mismatch("WRONG_SHAPE", f"the output holds {names[0]}; the reference's holds {names[1]}")
    for (name, mine), (_, theirs) in zip(got, want, strict=True):
        if isinstance(mine, torch.Tensor) != isinstance(theirs, torch.Tensor):
            return Mismatch("WRONG_DTYPE", f"{name} is a {type(mine).__name__}; expected {type(theirs).__name__}")
        if not isinstance(mine, torch.Tensor):
            continue
        if mine.shape != theirs.shape:
            return Mismatch("WRONG_SHAPE", f"{name} has shape {list(mine.shape)}; expected {list(theirs.shape)}")
        if mine.dtype != theirs.dtype:
            return Mismatch("WRONG_DTYPE", f"{name} is {mine.dtype}; expected {theirs.dtype}")
    return None


def measure(name: str, candidate: Any, expected: Expected) -> Measured | Mismatch | None:
    """Returns the ratios of one leaf, or the fault; None for a leaf without elements to compare."""
    reference = expected.value
    if not isinstance(reference, torch.Tensor):
        same = candidate == reference or (candidate != candidate and reference != reference)
        return None if same else Mismatch("WRONG_VALUE", f"{name} is {candidate!r}; expected {reference!r}")
    if not isinstance(candidate, torch.Tensor) or candidate.shape != reference.shape:
        return Mismatch("WRONG_SHAPE", f"{name} is not of shape {list(reference.shape)} any more")
    if reference.numel() == 0:
        return None
    floating = reference.is_floating_point() or reference.is_complex()
    if expected.exact and floating:
        return _whole(name, candidate, reference)
    if expected.close is not None and floating:
        return _close(name, candidate, reference, expected.close)
    if expected.error is None:
        return _discrete(name, candidate, expected)
    return _ratios(name, candidate, expected)


def _discrete(name: str, candidate: torch.Tensor, expected: Expected) -> Measured | Mismatch:
    reference = expected.value
    right = Measured(name, 0.0, 0.0, 0.0, 0.0, "", reference.numel())
    wrong = candidate != reference
    if not bool(wrong.any()):
        return right
    why = ""
    if expected.choice is not None:
        if (fault := expected.choice.fault(candidate)) is None:
            return right
        why = f"; {fault}"
    elif isinstance(gold := expected.gold, torch.Tensor) and gold.shape == reference.shape:
        wrong &= candidate != gold  # where reference and oracle differ, the choice hangs on rounding
        if not bool(wrong.any()):
            return right
    at = int(wrong.flatten().nonzero()[0])
    return Mismatch(
        "WRONG_VALUE",
        f"{name}: {int(wrong.sum())} of {reference.numel()} values differ; at {index_of(at, reference.shape)} got "
        f"{candidate.flatten()[at].item()}, expected {reference.flatten()[at].item()}{why}",
    )


def _whole(name: str, candidate: torch.Tensor, reference: torch.Tensor) -> Measured:
    """Judges whole numbers: rounding alone is never off by half of one, a lost or doubled term always is."""
    share = ((candidate.double() - reference.double()).abs() / tolerance.HALF_OF_ONE).flatten().nan_to_num(inf)
    at = int(share.argmax())
    got, wanted = candidate.flatten()[at].item(), reference.flatten()[at].item()
    worst = f"at {index_of(at, reference.shape)} got {got:.9g}, the exact sum is {wanted:.9g}"
    rms, largest = sqrt(share.square().mean().item()), share[at].item()
    return Measured(name, rms, largest, tolerance.WHOLE_LIMIT, tolerance.WHOLE_LIMIT, worst, reference.numel())


def _close(name: str, candidate: torch.Tensor, reference: torch.Tensor, close: float) -> Measured | Mismatch:
    """Judges by |c - r| <= close + close * |r|, as `torch.allclose` does; NaN equals nothing, an infinity itself."""
    c, r = (torch.view_as_real(t) if t.is_complex() else t for t in (candidate, reference))
    c, r = c.double().flatten(), r.double().flatten()
    share = torch.where(c == r, 0.0, (c - r).abs() / (close + close * r.abs()))
    share = share.nan_to_num(inf)
    at = int(share.argmax())
    worst = f"at {index_of(at, reference.shape)} got {c[at].item():.9g}, reference {r[at].item():.9g}"
    rms = sqrt(share.square().mean().item())
    return Measured(name, rms, share[at].item(), 1.0, 1.0, worst, reference.numel())


def _ratios(name: str, candidate: torch.Tensor, expected: Expected) -> Measured | Mismatch:
    assert expected.gold is not None
    assert expected.error is not None
    real = (
        torch.view_as_real(t) if t.is_complex() else t
        for t in (candidate, expected.value, expected.gold, expected.error)
    )
    ratios = Ratios(*real, shape=candidate.shape)
    eps = torch.finfo(candidate.dtype).eps * expected.factor
    if candidate.numel() < tolerance.SMALL_ELEMENTS:
        eps *= tolerance.SMALL_FACTOR
    if (at := ratios.class_fault(expected.infinite)) is not None:
        where = f"{ratios.class_faults} values are not finite as expected; {_witness(ratios, at)}"
        return Mismatch("WRONG_VALUE", f"{name}: {where}")
    found = ratios.measure(eps, expected.error_rms, expected.error_max)
    dtype_name = name_of(candidate.dtype)
    limits = expected.limits or tolerance.limits_for(dtype_name, candidate.numel())
    scale = (
        f"rms of gold {found.gold_rms:.3g}, of the reference's error {found.error_rms:.3g}, "
        f"of the candidate's {found.difference_rms:.3g}"
    )
    return Measured(
        name,
        max(found.ratio_rms, found.ratio_slice / tolerance.SLICE_FACTOR),
        found.ratio_max,
        limits.rms,
        limits.max,
        f"{_witness(ratios, found.worst)}; {scale}",
        found.elements,
    )


def _witness(ratios: Ratios, at: int) -> str:
    got, reference, gold = ratios.at(at)
    return f"at {index_of(at, ratios.shape)} got {got:.9g}, reference {reference:.9g}, gold {gold:.9g}"


def index_of(flat: int, shape: torch.Size) -> list[int]:
    """Returns the index of an element by its number in row-major order."""
    flat %= max(prod(shape), 1)
    index: list[int] = []
    for extent in reversed(shape):
        index.append(flat % extent)
        flat //= extent
    return index[::-1]
