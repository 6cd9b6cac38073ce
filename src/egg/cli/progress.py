"""Shows a run while it works: a live view on a terminal, a line for each event elsewhere."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live

from egg.protocols import Clock, Listener
from egg.reports import terminal
from egg.schema.plan import StagePlan
from egg.schema.run import Event, RunState


class Lines:
    """Prints one line for each event."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._begin_s = clock()

    def on_plan(self, state: RunState, plan: StagePlan) -> None:
        """Prints nothing: the outcome follows soon."""

    def on_event(self, state: RunState, event: Event) -> None:
        """Prints what the event brought."""
        text = f"[{self._clock() - self._begin_s:6.1f} s] {terminal.line(state, event)}"
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class View:
    """Holds what the live view shows; rich asks for it several times a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._state: RunState | None = None
        self._plan: StagePlan | None = None
        self._event_s = clock()

    def on_plan(self, state: RunState, plan: StagePlan) -> None:
        """Remembers what is tried now."""
        self._state, self._plan = state, plan

    def on_event(self, state: RunState, event: Event) -> None:
        """Remembers how far the run has come."""
        self._state, self._event_s = state, self._clock()

    def __rich__(self) -> RenderableType:
        """Returns the view as of now."""
        return terminal.progress(self._state, self._plan, self._left_s())

    def _left_s(self) -> float | None:
        if self._state is None or self._state.started.config.budget_s is None:
            return None
        spent_s = self._state.spent_s + self._clock() - self._event_s
        return self._state.started.config.budget_s - spent_s


@contextmanager
def watching(console: Console, clock: Clock) -> Generator[Listener]:
    """Gives a listener that shows the run on `console`, and clears the live view afterwards."""
    if not console.is_terminal:
        yield Lines(console, clock)
        return
    view = View(clock)
    # Twice a second: drawing takes time from the cores that are being measured.
    with Live(view, console=console, refresh_per_second=2, transient=True):
        yield view
