"""Holds what a candidate gave against what the reference gives, leaf by leaf, under `tolerance.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, prod, sqrt
from typing import Any

import torch

from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.discrete import equally_good
from egg.evaluation.tensors import walk

_CHUNK = 1 << 20


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


def measure(
    name: str, candidate: Any, expected: Expected, sources: Sequence[torch.Tensor] = ()
) -> Measured | Mismatch | None:
    """Returns the ratios of one leaf, or the fault; None for a leaf without elements to compare.

    `sources` are the tensors that an index may point into.
    """
    reference = expected.value
    if not isinstance(reference, torch.Tensor):
        same = candidate == reference or (candidate != candidate and reference != reference)
        return None if same else Mismatch("WRONG_VALUE", f"{name} is {candidate!r}; expected {reference!r}")
    if reference.numel() == 0:
        return None
    if expected.error is None:
        return _exact(name, candidate, expected, sources)
    return _Judge(name, candidate, expected).measure()


def _exact(
    name: str, candidate: torch.Tensor, expected: Expected, sources: Sequence[torch.Tensor]
) -> Measured | Mismatch:
    reference = expected.value
    wrong = candidate != reference
    if isinstance(gold := expected.gold, torch.Tensor) and gold.shape == reference.shape:
        wrong &= candidate != gold  # where reference and oracle differ, the choice hangs on rounding
    if not bool(wrong.any()) or equally_good(candidate, reference, sources):
        return Measured(name, 0.0, 0.0, 0.0, 0.0, "", reference.numel())
    at = int(wrong.flatten().nonzero()[0])
    return Mismatch(
        "WRONG_VALUE",
        f"{name}: {int(wrong.sum())} of {reference.numel()} values differ; at {_index(at, reference.shape)} got "
        f"{candidate.flatten()[at].item()}, expected {reference.flatten()[at].item()}",
    )


class _Judge:
    """Judges one floating leaf; works through it in chunks, so that float64 copies stay small."""

    def __init__(self, name: str, candidate: torch.Tensor, expected: Expected) -> None:
        assert expected.gold is not None
        assert expected.error is not None
        self._name = name
        self._dtype = candidate.dtype
        self._shape = candidate.shape
        self._c = _real(candidate).reshape(-1)
        self._r = _real(expected.value).reshape(-1)
        self._g = _real(expected.gold).reshape(-1)
        self._e = _real(expected.error).reshape(-1)
        self._least_rms, self._least_max = expected.error_rms, expected.error_max
        self._eps = torch.finfo(candidate.dtype).eps * expected.factor
        if candidate.numel() < tolerance.SMALL_ELEMENTS:
            self._eps *= tolerance.SMALL_FACTOR
        self._limits = tolerance.limits_for(str(candidate.dtype).removeprefix("torch."), candidate.numel())

    def measure(self) -> Measured | Mismatch:
        squares = torch.zeros(3, dtype=torch.float64, device=self._g.device)
        error_max, counted = 0.0, 0
        for part in range(0, self._g.numel(), _CHUNK):
            at = slice(part, part + _CHUNK)
            c, r, g, e = self._c[at].double(), self._r[at], self._g[at], self._e[at]
            judged = torch.isfinite(g) & torch.isfinite(r)
            if (fault := self._class_fault(part, c, r, g, judged)) is not None:
                return fault
            zero = torch.zeros((), dtype=torch.float64)
            e, g, d = torch.where(judged, e, zero), torch.where(judged, g, zero), torch.where(judged, c - g, zero)
            squares += torch.stack([(e * e).sum(), (g * g).sum(), (d * d).sum()])
            error_max = max(error_max, e.abs().max().item())
            counted += int(judged.sum())
        rms = [sqrt(s / max(counted, 1)) for s in squares.tolist()]
        allowed = max(rms[0], self._eps * rms[1], self._least_rms)
        ratio_max, worst = self._largest(max(error_max, self._least_max))
        ratio_rms = _ratio(rms[2], allowed)
        slices = self._slices(allowed) / tolerance.SLICE_FACTOR
        scale = f"rms of gold {rms[1]:.3g}, of the reference's error {rms[0]:.3g}, of the candidate's {rms[2]:.3g}"
        return Measured(
            self._name,
            max(ratio_rms, slices),
            ratio_max,
            self._limits.rms,
            self._limits.max,
            f"{self._witness(worst)}; {scale}",
            counted,
        )

    def _class_fault(
        self, start: int, c: torch.Tensor, r: torch.Tensor, g: torch.Tensor, judged: torch.Tensor
    ) -> Mismatch | None:
        agreed = ~judged & (_class(r) == _class(g))
        wrong = (judged & ~torch.isfinite(c)) | (agreed & (_class(c) != _class(r)))
        if not bool(wrong.any()):
            return None
        at = start + int(wrong.nonzero()[0])
        return Mismatch(
            "WRONG_VALUE", f"{self._name}: {int(wrong.sum())} values are not finite as expected; {self._witness(at)}"
        )

    def _largest(self, error_max: float) -> tuple[float, int]:
        best, where = -1.0, 0
        for part in range(0, self._g.numel(), _CHUNK):
            at = slice(part, part + _CHUNK)
            g = self._g[at]
            judged = torch.isfinite(g) & torch.isfinite(self._r[at])
            d = torch.where(judged, (self._c[at].double() - g).abs(), 0.0)
            allowed = torch.clamp(self._eps * g.abs(), min=error_max)
            ratio = torch.where(d == 0, 0.0, torch.where(judged, d / allowed, 0.0))
            top = ratio.max()
            if top.item() > best:
                best, where = top.item(), part + int(ratio.argmax())
        return best, where

    def _slices(self, allowed: float) -> float:
        """Returns the largest rms ratio over a sample of rows, so that one wrong tile can't hide in the whole."""
        width = 1
        for extent in reversed(self._shape):
            if width >= tolerance.SLICE_ELEMENTS:
                break
            width *= extent
        rows = self._g.numel() // max(width, 1)
        if width < tolerance.SLICE_ELEMENTS or rows < 2:
            return 0.0
        picked = torch.randint(rows, (min(tolerance.SLICES, rows),))
        c, g, e, r = (t.view(rows, width)[picked].double() for t in (self._c, self._g, self._e, self._r))
        judged = torch.isfinite(g) & torch.isfinite(r)
        c, g, e = (torch.where(judged, t, 0.0) for t in (c, g, e))
        error = _rms(e).maximum(self._eps * _rms(g)).clamp(min=max(allowed * 1e-3, self._least_rms))
        difference = _rms(c - g)
        return torch.where(difference == 0, 0.0, difference / error).max().item()

    def _witness(self, at: int) -> str:
        got, reference, gold = (t[at].item() for t in (self._c, self._r, self._g))
        return f"at {_index(at, self._shape)} got {got:.9g}, reference {reference:.9g}, gold {gold:.9g}"


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _class(tensor: torch.Tensor) -> torch.Tensor:
    """Returns 0 for finite, 1 for NaN, 2 for +inf, 3 for -inf."""
    return tensor.isnan() * 1 + tensor.isposinf() * 2 + tensor.isneginf() * 3


def _rms(rows: torch.Tensor) -> torch.Tensor:
    return (rows * rows).mean(-1).sqrt()


def _ratio(difference: float, allowed: float) -> float:
    if difference == 0:
        return 0.0
    return difference / allowed if allowed > 0 and isfinite(difference) else inf


def _index(flat: int, shape: torch.Size) -> list[int]:
    flat %= max(prod(shape), 1)
    index: list[int] = []
    for extent in reversed(shape):
        index.append(flat % extent)
        flat //= extent
    return index[::-1]
