"""The trial plan: which draws a candidate is held against, as values. Imports no torch, so that the caller reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KEPT_CALLS = 3
"""Outputs that are held to the end, to see whether a later call changes them."""

State = Literal["kept", "redrawn", "continued"]
"""Weights before the call: those of the trial before, new ones, or what the last call left behind."""

SIGNED = "signed"
"""Normal values also where the task's own are never negative: for tasks that trivial answers pass otherwise."""
DISTRIBUTIONS = ("scaled", "normal", "uniform", "sparse", "constant rows", "outlier", "sorted", "binary")
"""Values of floating inputs besides those of the task's own generator."""
SPECIALS = ("infinite", "nan", "negative zero", "denormal", "largest", "all equal", "extreme integers")
"""Values that a few elements, or all, are set to."""
LAYOUTS = ("transposed", "offset", "expanded", "channels last")
SHAPES = ("batch 1", "batch + 1", "odd sizes", "empty")


@dataclass(frozen=True)
class TrialKind:
    """One comparison: how inputs are drawn and laid out, what the weights are, how often and how it is called."""

    name: str
    values: str = "own"
    """`own`, one of `DISTRIBUTIONS` or `SPECIALS`, `any` (a distribution by the seed), or `integers`."""
    layout: str = "own"
    shape: str = "own"
    state: State = "kept"
    reuse: bool = False
    """True to put the new values into the tensors of the last call, at the same addresses."""
    repeats: int = 1
    """Calls on this draw, each from the same weights and random state."""
    gradients: bool = False
    """True to compare the gradients of a random projection of the outputs too."""
    needed: bool = False
    """True where no candidate is judged without it; any other kind is left out where it does not apply to a task."""
    large: bool = False
    """True for a batch that takes an input or output past 2^31 elements or bytes."""

    @property
    def required(self) -> bool:
        """True for what the task itself declares. Of the rest, a candidate may say that it does not take it."""
        return self.layout == "own" and self.shape == "own" and self.values not in SPECIALS and not self.large

    @property
    def own(self) -> bool:
        """True for inputs of the task's own generator as they are."""
        return self.required and self.values == "own"


_OWN = TrialKind("own", state="redrawn")
_SAME_ADDRESS = TrialKind("own, same addresses", state="redrawn", reuse=True)
_SAME_WEIGHTS = TrialKind("own, same weights")
_GRADIENTS = TrialKind("gradients", state="redrawn", gradients=True)

SEARCH = (
    _OWN,
    _SAME_ADDRESS,
    _SAME_WEIGHTS,
    TrialKind("scaled", values="scaled"),
    TrialKind("any distribution", values="any"),
    _GRADIENTS,
)
"""Runs for every attempt of a search, so it is short."""

ATTEST = (
    _OWN,
    _SAME_ADDRESS,
    _SAME_WEIGHTS,
    TrialKind("repeated", repeats=3),
    TrialKind("second call", state="continued"),
    _OWN,
    _SAME_ADDRESS,
    _GRADIENTS,
    *(TrialKind(values, values=values, state="redrawn" if i % 2 else "kept") for i, values in enumerate(DISTRIBUTIONS)),
    TrialKind("integers", values="integers"),
    *(TrialKind(layout, layout=layout) for layout in LAYOUTS),
    *(TrialKind(shape, shape=shape) for shape in SHAPES),
    *(TrialKind(values, values=values) for values in SPECIALS),
)

LARGE = (TrialKind("past 2^31", shape="large", large=True),)
"""On request only: it takes some hundred GiB for float32, a quarter of that where only bytes pass 2^31."""


def plan_for(trials: tuple[TrialKind, ...], policy: str) -> tuple[TrialKind, ...]:
    """Returns the trials that a policy asks for: `kernelbench` knows the task's own draws alone."""
    return tuple(kind for kind in trials if kind.own or kind.needed) if policy == "kernelbench" else trials
