"""Small windows: reductions over a few points for each element of the vectorised loop, such as pooling.

Their accumulators are variables of that element, and the points of the window are written out one after the other, so
that the whole window stays in registers. Elsewhere the vectorised loop is innermost and its accumulators are arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from egg.expert.emit.accumulators import Accumulator
from egg.expert.index import Axis
from egg.expert.ir import Expr, Guard, Reduce, walk
from egg.expert.loops import Stage

MOST_POINTS = 32
"""Points of a window that is written out."""
_KINDS = ("sum", "prod", "max", "min", "any", "all")
"""Reductions with one accumulator; a loop over elements that carry a value and its position is not vectorised."""


def window_start(stage: Stage, loops: Sequence[Axis], reductions: Sequence[Accumulator]) -> int | None:
    """Returns where the loops of a stage's window begin, just outside its vectorised loop; None where it has none.

    All that the stage computes is reduced over one window, or goes into what is. A condition that is the same for the
    whole vectorised loop, as padding above and below asks, is better tested once, ahead of that loop.
    """
    if not reductions or any(r.first != reductions[0].first or r.kept != (loops[-1],) for r in reductions):
        return None
    start = reductions[0].first
    if any(r.how.kind not in _KINDS for r in reductions) or prod(axis.extent for axis in loops[start:-1]) > MOST_POINTS:
        return None
    reduced = sum(isinstance(c.how, Reduce) for c in stage.computes)
    if any(_is_uniform(part, loops[-1]) for compute in stage.computes for part in walk(compute.body)):
        return None
    plain = all(c.how is None and not c.stores for c in stage.computes if not isinstance(c.how, Reduce))
    return start if plain and reduced == len(reductions) else None


def _is_uniform(part: Expr, lane: Axis) -> bool:
    """Returns whether a condition does not depend on the vectorised loop."""
    return isinstance(part, Guard) and any(lane not in bound.index.axes() for bound in part.bounds)
