"""A run in the terminal: rich renderables, which print as plain text where there is no terminal."""

from __future__ import annotations

from collections import Counter

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from egg.reports import figures
from egg.reports.basis import foundation, foundation_table
from egg.reports.summary import PATH_NOTE, Summary, speedup_of, summarise, title_of
from egg.schema.plan import StagePlan
from egg.schema.run import (
    Analyzed,
    AttemptFinished,
    BaselineMeasured,
    Event,
    FinalMeasured,
    RunFinished,
    RunStarted,
    RunState,
)

STYLE = {"faster": "bold green", "equal": "bold", "failed": "bold red", "unfinished": "bold yellow"}
VERDICT_STYLE = {"accepted": "green", "kept": "yellow", "rejected": "dim", "failed": "red"}


def final_table(state: RunState) -> RenderableType:
    """Returns headline, ladder, path and what is not covered, as one renderable."""
    summary = summarise(state)
    parts: list[RenderableType] = [Text(summary.headline, STYLE[summary.result]), Text(_context(state), "dim")]
    if state.outcome is not None:
        parts.append(Text(state.outcome.summary))
    parts += [Text(""), ladder(summary)]
    if len(summary.steps) > 1:
        parts += [Text(""), path(summary), Text(PATH_NOTE, "dim")]
    if summary.winner and summary.winner.candidate.not_covered:
        parts += [Text(""), Text("Left to PyTorch: " + "; ".join(summary.winner.candidate.not_covered), "dim")]
    if (found := foundation(summary)) is not None:
        parts += [Text(""), foundation_table(found)]
    return Group(*parts)


def ladder(summary: Summary) -> Table:
    """Returns the baselines, the winner and the floor with their times."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("ladder", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("speedup over it [95 %]", justify="right")
    table.add_row(Text(f"EGG{summary.estimate_note}", "bold"), figures.ms(summary.candidate_ms), "")
    for rung in summary.rungs:
        shown = figures.interval(rung.speedup) if not rung.reason else f"not available: {rung.reason}"
        table.add_row(Text(rung.name), figures.ms(rung.median_ms), Text(shown))
    table.add_row(Text("roofline floor", "dim"), figures.ms(summary.floor_ms), Text(summary.floor_note, "dim"))
    return table


def path(summary: Summary) -> Table:
    """Returns the accepted moves from the reference to the winner."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("#", justify="right")
    table.add_column("stage", no_wrap=True)
    table.add_column("move")
    for name in ("predicted", "measured", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for step in summary.steps:
        plan = step.attempt.plan
        table.add_row(
            str(plan.index),
            plan.stage,
            Text(title_of(step.attempt)),
            figures.ratio(plan.predicted_effect if plan.parent_id else None),
            figures.ratio(step.measured_effect),
            figures.ms(step.attempt.evaluation.candidate_ms),
        )
    return table


def _context(state: RunState) -> str:
    started = state.started
    counts = Counter(a.verdict for a in state.attempts)
    verdicts = ", ".join(
        f"{counts[name]} {name}" for name in ("accepted", "kept", "rejected", "failed") if counts[name]
    )
    return (
        f"{started.task.name} on {started.device.name}, {started.config.threads} threads, "
        f"policy {started.config.policy}; {len(state.attempts)} attempt{'' if len(state.attempts) == 1 else 's'}"
        f"{f' ({verdicts})' if verdicts else ''} in {figures.seconds(state.spent_s)}"
    )


def progress(state: RunState | None, plan: StagePlan | None, left_s: float | None, recent: int = 6) -> RenderableType:
    """Returns how far a run has come: what it does now, the best so far, and the last verdicts."""
    if state is None:
        return Text("starting", "dim")
    summary = summarise(state)
    head = Text(_doing(state, plan), "bold")
    if left_s is not None:
        head.append(f"   {figures.seconds(max(left_s, 0.0))} left", "dim")
    parts: list[RenderableType] = [head, Text(f"best so far  {best_so_far(summary)}")]
    table = Table(box=None, pad_edge=False, show_header=False)
    for attempt in state.attempts[-recent:]:
        shown = figures.ratio(attempt.effect)
        style = VERDICT_STYLE[attempt.verdict]
        table.add_row(
            Text(str(attempt.plan.index), "dim"), Text(attempt.plan.stage, "dim"), Text(title_of(attempt)),
            Text(shown), Text(attempt.verdict, style), Text(attempt.reason, "dim", overflow="ellipsis", no_wrap=True),
        )  # fmt: skip
    return Group(*parts, table)


def best_so_far(summary: Summary) -> str:
    """Returns the best candidate so far against each baseline in one line."""
    if summary.over_eager is None:
        return "nothing measured yet"
    against = [f"{figures.ratio(r.speedup.value)} over {r.name}" for r in summary.rungs if r.speedup]
    return ", ".join(against) or f"{figures.ratio(summary.over_eager.value)} over eager"


def line(state: RunState, event: Event) -> str:
    """Returns one line that says what an event brought; `state` includes it."""
    match event:
        case RunStarted():
            return f"{event.task.name} on {event.device.name}, {event.config.threads} threads, run {event.run_id}"
        case Analyzed():
            costs = (f"{len(a.ops)} operators, floor {figures.ms(a.floor_ms)}, {a.bound}" for a in event.analyses)
            return f"analysis: {'; '.join(costs)}"
        case BaselineMeasured(baseline=rung) if not rung.available:
            return f"baseline {rung.name}: not available: {rung.reason}"
        case BaselineMeasured(baseline=rung):
            return f"baseline {rung.name}: {figures.ms(sum(rung.median_ms.values()))}"
        case AttemptFinished(attempt=attempt):
            took = f"{attempt.plan.index:2}  {attempt.plan.stage:9}  {title_of(attempt):30}"
            if attempt.verdict == "failed":
                return f"attempt {took} failed: {attempt.reason}"
            best = best_so_far(summarise(state))
            return f"attempt {took} {figures.ratio(attempt.effect):>6}  {attempt.verdict:8}  best so far {best}"
        case FinalMeasured(evaluation=evaluation):
            shown = figures.interval(speedup_of(evaluation))
            return f"final measurement of {event.candidate_id}: {evaluation.status}, {shown} over eager"
        case RunFinished(outcome=outcome):
            return f"done ({outcome.stopped_by}): {outcome.summary}"


def _doing(state: RunState, plan: StagePlan | None) -> str:
    config = state.started.config
    if state.outcome is not None:
        return "done"
    if not state.analyses:
        return "analysing the task"
    if len(state.baselines) < len(config.ladder):
        return f"timing the baseline {config.ladder[len(state.baselines)]}"
    if plan is not None and plan.index >= len(state.attempts):
        title = plan.option_id or ("reference" if plan.parent_id is None else plan.objective)
        predicted = f", predicted {figures.ratio(plan.predicted_effect)}" if plan.parent_id else ""
        return f"{plan.stage}   attempt {plan.index}: {title}{predicted}"
    return "measuring the finalists in fresh processes" if state.attempts else "starting the search"
