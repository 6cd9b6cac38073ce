"""How far a candidate may be from the float64 oracle. Every tolerance of the house is in this file.

With g the oracle, r the reference in the task's dtype, c the candidate, and eps the unit of the output's dtype:

    E_ref      = max(rms(r - g), eps * rms(g))
    ratio_rms  = rms(c - g) / E_ref                              at most `rms`
    ratio_max  = max |c - g| / max(max |r - g|, eps * |g|)       at most `max`

So the reference's own error is the only absolute allowance, down to numbers so small that hardware may flush them to
zero: a result of plain zeros fails, and an honest reordering of a long sum passes.
"""

from __future__ import annotations

from dataclasses import dataclass

_SMALLEST_NORMAL = {
    "float64": 2.0**-1022, "float32": 2.0**-126, "bfloat16": 2.0**-126,
    "complex64": 2.0**-126, "complex128": 2.0**-1022,
}  # fmt: skip


def flushed_below(dtype_name: str) -> float:
    """Returns the smallest normal number of a dtype: processors and compilers may take what is below for zero.

    Zero for the dtypes whose subnormal numbers are common values, which nobody flushes.
    """
    return _SMALLEST_NORMAL.get(dtype_name, 0.0)


SLICE_FACTOR = 2.0
"""A slice holds fewer elements than the whole, so its ratio scatters more."""
SLICE_ELEMENTS = 256
"""Fewer elements make no slice that says anything."""
SLICE_LARGEST = 65_536
"""Rows with more elements are looked at in blocks of this size."""
SLICES = 64
"""Slices across each other dimension that are looked at; all along the last ones are."""
SLICE_FLOOR = 1e-3
"""Times the allowance of the whole: less is nothing to blame a slice for, whose own values may all be zero."""

TIE_FACTOR = 8.0
"""Times the reference's largest error in the values that it chose from: closer ones are a tie."""

SMALL_ELEMENTS = 64
"""Below it, the rms error of the reference is a few samples of a random quantity and may be zero by luck."""
SMALL_FACTOR = 2.0

NO_ORACLE_FACTOR = 64.0
"""Times eps: what stands for the reference's error where it can't be run in float64."""

FLOAT64_FACTOR = 256.0
"""Times eps, and the largest value: the least error to assume of a float64 reference, which is its own oracle.

A float32 sum that is added up in float64 does not show what a float64 sum errs. A serial sum of equal terms, for one,
leaves a mean off by tens of eps, and a value that is normalised by it by hundreds. Float32 is far worse still.
"""

FLOAT64_FROM_FLOAT32 = 2.0**-29
"""eps(float64) / eps(float32): scales the error of a float32 twin to that of a float64 reference."""

REFERENCE_ERROR_CAP = {"float64": 1e-6, "float32": 2e-2, "float16": 0.5, "bfloat16": 0.5}
"""Relative rms error of a reference above which the oracle did not compute the same thing, and is not used."""

REFERENCE_ERROR_SANE = {"float64": 1e-8, "float32": 2e-3, "float16": 5e-2, "bfloat16": 2e-1}
"""Relative rms error of a reference above which it is counted as this much only, and said so: a sloppy reference does
not license sloppy kernels."""

CANCELLED_EPS = 64.0
"""Times eps and the largest input: an error of the reference that is believed however small its result is."""

SECOND_OPINION_WITHIN = 100.0
SECOND_OPINION_ELEMENTS = 4096
"""A miss by less than the factor, in a leaf below the size, asks for the reference's error on more draws first; any
miss does in a leaf of fewer than `SMALL_ELEMENTS`, since one error that is zero by luck makes every factor infinite."""

NEAR_MISS = 3.0
"""A miss by less asks in a leaf of any size: PyTorch adds up some sums in a wider type, which a candidate need not."""

TRIVIAL_MARGIN = 20.0
"""How far beyond the limit of the check a trivial answer has to be, so that the task is worth scoring."""

FLOOR_SHARE = 0.5
"""A time below this share of the roofline floor is noted; data that stays in the caches may beat the floor itself."""

FLOOR_BANDWIDTH = 2.0
"""Times the bandwidth of a copy: what no kernel exceeds. Where a copy also reads what it overwrites, reading alone is
half as fast again, and a machine that was busy when it was measured looks slower than it is."""

SAMPLED_FACTOR = 8.0
"""Times the limit and the reference's relative error: how far elements of a timed output may be from the reference's.
Work that was skipped or answered from memory is off by many thousand times that."""
SAMPLED_UNEQUAL_SHARE = 0.02
"""Of integers and booleans, where ties and comparisons of rounded values may fall either way."""

RANDOM_UNSEEN_SHARE = 0.005
RANDOM_UNSEEN_FACTOR = 3.0
"""Of the elements of a random timed output: how many may hold a value that the reference gives under none of some
seeds. What one of its own runs holds that no other does counts by the factor."""

CLOCK_SLACK_S = 0.005
CLOCK_FACTOR = 3.0
"""A block that takes longer on the caller's clock than its calls do, by more than this factor over what the
reference's blocks do, plus the slack, hides work."""
EVENT_SLACK_NS = 50_000
"""The same for a device that is busy after the events of a call."""


@dataclass(frozen=True)
class Limits:
    """The limits for one output dtype."""

    rms: float
    max: float


_WIDE = Limits(rms=4.0, max=8.0)
_HALF = Limits(rms=3.0, max=16.0)

RELAXED = Limits(rms=2.0, max=4.0)
"""Under `tf32` and `half`, where the error of narrowed operands outweighs that of float32 sums. It is the same in every
order of summation: honest kernels are near 1, bfloat16 in place of TF32 is at 3, float8 in place of bfloat16 at 8."""


def limits_for(dtype_name: str, elements: int = SMALL_ELEMENTS) -> Limits:
    """Returns the limits under the policy `strict`; `dtype_name` is without the `torch.` prefix.

    Over a few elements, rms says no more than the largest, so both have the wider limit.
    """
    limits = _HALF if dtype_name in ("float16", "bfloat16") else _WIDE
    return limits if elements >= SMALL_ELEMENTS else Limits(rms=limits.max, max=limits.max)


HALF_OF_ONE = 0.5
WHOLE_LIMIT = 0.99
"""Of the ratio to half of one. A kernel that takes whole numbers through Winograd's or Fourier's transform is off by
rounding, far below; any lost term is off by one at least."""

WHOLE_RANGE = {"float64": 2.0**52, "float32": 2.0**23, "float16": 2.0**10, "bfloat16": 2.0**7}
"""Sums of absolute values up to here are whole numbers in every order of summation."""


def suite_tolerance(dtype_name: str) -> float:
    """Returns the absolute and relative tolerance of the policy `kernelbench`: that suite's own numbers by dtype."""
    return 1e-2 if dtype_name in ("float16", "bfloat16") else 1e-4


SHAKEN_UNITS = 8.0
"""Times eps: how far the operators of a shaken oracle err on values that are not the task's own. On values of one sign
an honest serial sum errs several times as much as PyTorch's; TF32 and half types err a thousand times as much."""


def asks_again(excess: float, elements: int, own: bool = True) -> bool:
    """Returns whether a miss may be bad luck of the reference's one sample of error.

    Any miss may be where values are not the task's `own`: they may be so conditioned that a correct order of
    operations errs more than the reference happens to.
    """
    if not own:
        return excess > 1
    if elements < SMALL_ELEMENTS:
        return excess > 1
    if excess < NEAR_MISS:
        return excess > 1
    return 1 < excess < SECOND_OPINION_WITHIN and elements < SECOND_OPINION_ELEMENTS
