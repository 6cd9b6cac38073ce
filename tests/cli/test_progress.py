import io

from rich.console import Console

from egg.cli.progress import Lines, View, watching
from egg.schema.run import AttemptFinished, RunState, fold
from egg.testing import factories as make
from egg.testing.fakes import ManualClock


def state_of(*events: object) -> RunState:
    state = None
    for event in events:
        state = fold(state, event)
    assert state is not None
    return state


def printed(view: View) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(view)
    return console.file.getvalue()


def test_elsewhere_than_on_a_terminal_each_event_is_a_line() -> None:
    console, clock = Console(file=io.StringIO(), width=40), ManualClock()
    with watching(console, clock) as listener:
        assert isinstance(listener, Lines)
        for at, event in enumerate(make.make_events()):
            clock.now_s = float(at)
            listener.on_event(state_of(*make.make_events()[: at + 1]), event)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == len(make.make_events())
    assert lines[1] == "[   1.0 s] analysis: 1 operators, floor 0.03 µs, launch"
    assert "best so far" in lines[3]


def test_the_view_shows_stage_attempt_best_and_time_left() -> None:
    clock = ManualClock()
    view = View(clock)
    assert "starting" in printed(view)
    started = make.make_run_started(config=make.make_config(budget_s=60.0))
    events = (started, *make.make_events()[1:4])
    state = state_of(*events)
    view.on_event(state, events[-1])
    plan = make.make_plan(index=1, stage="tiling", option_id="k0.lanes=64", parent_id="a", predicted_effect=1.3)
    view.on_plan(state, plan)
    clock.advance(2.0)
    text = printed(view)
    assert "tiling   attempt 1: k0.lanes=64, predicted 1.30×" in text
    assert f"{60.0 - state.spent_s - 2.0:.1f} s left" in text
    assert "1.00× over eager" in text
    assert "accepted" in text


def test_a_terminal_gets_the_live_view_which_leaves_nothing_behind() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with watching(console, ManualClock()) as listener:
        assert isinstance(listener, View)
        state = state_of(*make.make_events()[:4])
        listener.on_event(state, AttemptFinished(attempt=make.make_attempt()))
    assert console.file.getvalue().endswith("\x1b[2K")
