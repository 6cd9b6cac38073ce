"""Which structure gets the next tuning attempt: a structure that tunes better can overtake.

Upper confidence bound (Auer, Cesa-Bianchi and Fischer, 2002) over the logarithm of the best speedup: a structure that
was tuned little may still have OPTIMISM of gain in it, and the more it was tuned, the less of that is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

from egg.planning.arms import Arm

OPTIMISM = 0.15
"""Gain that one deviation of an untuned structure may hide, as a logarithm: about 16 percent."""


def promise(arm: Arm, total: int) -> float:
    """Returns the logarithm of the speedup that the structure may reach; `total` counts the attempts of all arms."""
    return log(arm.speedup) + OPTIMISM * sqrt(log(total + 2) / (len(arm.tuned) + 1))


def by_promise(candidates: Sequence[Arm]) -> list[Arm]:
    """Returns the structures in the order in which to tune them next; ties go to the faster one."""
    total = sum(len(arm.tuned) for arm in candidates)
    return sorted(candidates, key=lambda arm: (-promise(arm, total), -arm.speedup))
