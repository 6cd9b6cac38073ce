"""What the principles that apply to a task say about the steps that an author offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from egg.schema.analysis import Fact
from egg.schema.plan import Option
from egg.schema.principle import Principle
from egg.schema.run import RunState

Matching = Callable[[Mapping[str, Fact]], Sequence[Principle]]
"""Returns the principles whose conditions hold for these facts; pure."""


class Advice:
    """The principles that hold for at least one workload of a run."""

    def __init__(self, matching: Matching | None, state: RunState) -> None:
        self._known = matching is not None
        held = [p for a in state.analyses for p in matching(a.facts)] if matching else []
        self._principles = {p.id: p for p in held}

    def reasons(self, option: Option) -> tuple[Principle, ...]:
        """Returns the principles that speak for an option: its own first, then others that list its move."""
        own = self._principles.get(option.principle_id)
        others = [p for p in self._principles.values() if option.move in p.moves and p is not own]
        return (*([own] if own else []), *others)

    def backed(self, options: Sequence[Option]) -> list[Option]:
        """Returns the options that some principle speaks for; all of them where no principles are known."""
        return [o for o in options if not self._known or self.reasons(o)]
