"""From facts to the principles that apply."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from egg.schema.analysis import Fact
from egg.schema.principle import Predicate, Principle

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def match(principles: Iterable[Principle], facts: Mapping[str, Fact]) -> tuple[Principle, ...]:
    """Returns the principles whose conditions all hold, in the order given."""
    return tuple(p for p in principles if all(holds(condition, facts) for condition in p.applies_when))


def holds(condition: Predicate, facts: Mapping[str, Fact]) -> bool:
    """Returns whether one condition holds. A fact that is not known makes every condition on it false."""
    if condition.fact not in facts:
        return False
    fact, value = facts[condition.fact], condition.value
    match condition.op:
        case "==":
            return fact == value
        case "!=":
            return fact != value
        case "in":
            return isinstance(value, tuple) and fact in value
        case op:
            return _comparable(fact) and _comparable(value) and _ORDER[op](fact, value)


def _comparable(value: object) -> bool:
    return isinstance(value, int | float)
