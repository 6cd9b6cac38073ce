"""Whether random values come from the distribution of the reference's, where they are not drawn as PyTorch draws them.

Both sides are called `CALLS` times under different seeds, and a few numbers are taken of each output: the share of
zeros, the mean and the mean square, projections, correlations of neighbours, and the share of values that the reference
gives at that place under no seed. Were both of one distribution, every order of the 2 * CALLS values of a number would
be equally likely, whatever the distribution is. A candidate fails where one side's values lie all together in a gap
between the other's. That is so in 2 * (CALLS + 1) of binom(2 * CALLS, CALLS) orders: an honest one fails by 2e-12 for
each number, and by less than 1e-7 for an output with all that is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from statistics import median

import torch

CALLS = 24
LEAST_ELEMENTS = 64
"""Fewer random elements show too little of their distribution."""
_BLOCK, _SPREAD = 3 << 14, 1 << 14
"""Elements that are looked at one by one: side by side, and all over a larger tensor."""
_PROJECTIONS = 3
_LAGS = 3
_ALIGNED = 0.5
"""Times the distance of unrelated outputs: whoever is nearer under each seed draws as PyTorch does."""


@dataclass(frozen=True)
class Sample:
    """What is kept of one output."""

    cut: torch.Tensor
    """Some of its elements in float64, those of the block first."""
    whole: tuple[float, float, float, float]
    """Shares of zeros and of what is not finite, mean, and mean square."""


class Sampler:
    """Takes the same elements of each output of one shape, at places that nobody can foresee."""

    def __init__(self, shape: torch.Size) -> None:
        self.elements = prod(shape)
        self.lags = _lags(shape)
        self.places: torch.Tensor | None = None
        self.block = self.elements
        if self.elements > _BLOCK + _SPREAD:
            generator = torch.Generator()
            generator.seed()
            start = int(torch.randint(self.elements - _BLOCK, (), generator=generator))
            spread = torch.randint(self.elements, (_SPREAD,), generator=generator)
            self.places = torch.cat([torch.arange(start, start + _BLOCK), spread])
            self.block = _BLOCK

    def of(self, tensor: torch.Tensor) -> Sample:
        """Returns the sample of a tensor; a complex one counts by its magnitude."""
        flat = (tensor.abs() if tensor.is_complex() else tensor).reshape(-1)
        infinite = int(flat.numel() - torch.isfinite(flat).sum())
        if infinite:
            flat = flat.nan_to_num(0.0, 0.0, 0.0)
        zeros = int(flat.numel() - flat.count_nonzero())
        mean = flat.sum(dtype=torch.float64).item() / self.elements
        square = flat.double().square().sum().item() / self.elements
        cut = flat if self.places is None else flat[self.places.to(flat.device)]
        return Sample(cut.double().cpu(), (zeros / self.elements, infinite / self.elements, mean, square))


@dataclass(frozen=True)
class Samples:
    """What both sides gave on one draw, a sample a call."""

    mine: tuple[Sample, ...]
    same: tuple[Sample, ...]
    """Of the reference, under the seeds of `mine`."""
    other: tuple[Sample, ...]
    """Of the reference, under seeds of its own."""

    @property
    def random(self) -> bool:
        """True where the reference's values are not always the same."""
        first = self.same[0]
        return any(s.whole != first.whole or not torch.equal(s.cut, first.cut) for s in (*self.same, *self.other))


def drawn_alike(samples: Samples) -> bool:
    """Returns whether the candidate follows PyTorch's generator: under each seed it is nearer to the reference's output
    than to an unrelated one, and much nearer in the median. By chance each seed is a toss of a coin."""
    near = [_distance(a, b) for a, b in zip(samples.mine, samples.same, strict=True)]
    far = [_distance(a, b) for a, b in zip(samples.mine, samples.other, strict=True)]
    return all(n < f for n, f in zip(near, far, strict=True)) and median(near) < _ALIGNED * median(far)


def difference(samples: Samples, sampler: Sampler, absolute: float, relative: float) -> str:
    """Returns what tells the candidate's values from the reference's; nothing where both may be of one distribution.

    Each value may be off by rounding: by `absolute`, and by `relative` times itself.
    """
    if len({s.cut.numpy().tobytes() for s in samples.mine}) <= CALLS // 4 and _all_differ(samples.other):
        return f"the output is the same under most of {CALLS} seeds"
    known = torch.stack([s.cut for s in samples.same])
    signs = torch.randint(0, 2, (_PROJECTIONS, known.shape[1])).double() * 2 - 1
    mine = _numbers(samples.mine, known, signs, sampler, absolute, relative)
    theirs = _numbers(samples.other, known, signs, sampler, absolute, relative)
    off = absolute + relative * known.abs().max().item()
    largest = {0: 0.0, 1: off, 2: 2 * off * (known - known.mean(0)).abs().max().item()}
    largest[3] = 2 * off * known.abs().max().item()
    for name, (order, values) in mine.items():
        if _apart(values, theirs[name][1], largest[order]):
            ranges = [f"{min(v):.4g} to {max(v):.4g}" for v in (values, theirs[name][1])]
            return f"{name} is {ranges[0]} in {CALLS} calls; the reference's is {ranges[1]}"
    return ""


def unseen(values: torch.Tensor, known: torch.Tensor, absolute: float, relative: float) -> float:
    """Returns the share of elements whose value none of the rows of `known` has at that place."""
    allowed = absolute + relative * known.abs()
    return 1.0 - ((known - values).abs() <= allowed).any(0).double().mean().item()


def _numbers(
    samples: Sequence[Sample],
    known: torch.Tensor,
    signs: torch.Tensor,
    sampler: Sampler,
    absolute: float,
    relative: float,
) -> dict[str, tuple[int, list[float]]]:
    """Returns by name how rounding changes a number (0: not, 1: in proportion, 2 and 3: with the size of deviations or
    values), and its value for each sample."""
    cuts = torch.stack([s.cut for s in samples])
    mean = known.mean(0)
    deviations = cuts - mean
    # Counted away from zero or towards it, so that neighbours of one mask go together whatever their signs are.
    block = (deviations * mean.sign())[:, : sampler.block]
    numbers = {
        "the share of zeros": (0, [s.whole[0] for s in samples]),
        "the share of infinities and NaN": (0, [s.whole[1] for s in samples]),
        "the share of values that the reference never gives there": (
            0, [unseen(cut, known, absolute, relative) for cut in cuts],
        ),
        "the mean": (1, [s.whole[2] for s in samples]),
        "the mean square": (3, [s.whole[3] for s in samples]),
        "the variance": (2, deviations.square().mean(1).tolist()),
    }  # fmt: skip
    for i, sign in enumerate(signs):
        numbers[f"random projection {i + 1}"] = (1, (deviations * sign).mean(1).tolist())
    for lag in sampler.lags:
        products = (block[:, :-lag] * block[:, lag:]).mean(1)
        numbers[f"the correlation of elements {lag} apart"] = (2, products.tolist())
    return numbers


def _apart(mine: Sequence[float], theirs: Sequence[float], off: float) -> bool:
    """Returns whether one side lies in a gap between the other's values, by more than rounding."""
    return any(
        not any(min(inner) - off <= value <= max(inner) + off for value in outer)
        for inner, outer in ((mine, theirs), (theirs, mine))
    )


def _all_differ(samples: Sequence[Sample]) -> bool:
    return len({s.cut.numpy().tobytes() for s in samples}) == len(samples)


def _distance(a: Sample, b: Sample) -> float:
    return (a.cut - b.cut).square().mean().item()


def _lags(shape: torch.Size) -> tuple[int, ...]:
    """Returns how far neighbours along each of the last dimensions are apart in memory."""
    lags: list[int] = []
    step = 1
    for extent in reversed(shape):
        if extent > 1 and step < min(prod(shape), _BLOCK):
            lags.append(step)
        step *= extent
    return tuple(lags[:_LAGS])
