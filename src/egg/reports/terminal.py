"""A run in the terminal: rich renderables, which print as plain text where there is no terminal."""

from __future__ import annotations

from collections import Counter

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from egg.reports import figures
from egg.reports.summary import Summary, summarise, title_of
from egg.schema.run import RunState

STYLE = {"faster": "bold green", "equal": "bold", "failed": "bold red", "unfinished": "bold yellow"}


def final_table(state: RunState) -> RenderableType:
    """Returns headline, ladder, path and what is not covered, as one renderable."""
    summary = summarise(state)
    parts: list[RenderableType] = [Text(summary.headline, STYLE[summary.result]), Text(_context(state), "dim")]
    if state.outcome is not None:
        parts.append(Text(state.outcome.summary))
    parts += [Text(""), ladder(summary)]
    if len(summary.steps) > 1:
        parts += [Text(""), path(summary)]
    if summary.winner and summary.winner.candidate.not_covered:
        parts += [Text(""), Text("Left to PyTorch: " + "; ".join(summary.winner.candidate.not_covered), "dim")]
    return Group(*parts)


def ladder(summary: Summary) -> Table:
    """Returns the baselines, the winner and the floor with their times."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("ladder", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("speedup over it [95 %]", justify="right")
    table.add_row(Text("EGG", "bold"), figures.ms(summary.candidate_ms), "")
    for rung in summary.rungs:
        shown = figures.interval(rung.speedup) if not rung.reason else f"not available: {rung.reason}"
        table.add_row(Text(rung.name), figures.ms(rung.median_ms), Text(shown))
    share = "" if summary.floor_share_pct is None else f"EGG reaches {figures.per_cent(summary.floor_share_pct)} of it"
    table.add_row(Text("roofline floor", "dim"), figures.ms(summary.floor_ms), Text(share, "dim"))
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
        f"policy {started.config.policy}; {len(state.attempts)} attempts"
        f"{f' ({verdicts})' if verdicts else ''} in {figures.seconds(state.spent_s)}"
    )
