"""A run as Markdown, to paste into a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from egg.reports import figures
from egg.reports.basis import foundation, foundation_rows
from egg.reports.summary import PATH_NOTE, Summary, summarise, title_of
from egg.schema.run import RunState


def markdown(state: RunState) -> str:
    """Returns the run as Markdown: headline, ladder, path and what is not covered."""
    summary = summarise(state)
    started = state.started
    parts = [
        f"## {started.task.name}: {summary.headline}",
        f"{started.device.name}, {started.config.threads} threads, policy `{started.config.policy}`, "
        f"{len(state.attempts)} attempts in {figures.seconds(state.spent_s)}.",
    ]
    if state.outcome is not None:
        parts.append(_escape(state.outcome.summary))
    parts.append(_ladder(summary))
    if summary.steps:
        parts += [_path(summary), f"{figures.sentence(PATH_NOTE)}."]
    if summary.winner and summary.winner.candidate.not_covered:
        parts.append("Left to PyTorch: " + ", ".join(f"`{op}`" for op in summary.winner.candidate.not_covered) + ".")
    if (found := foundation(summary)) is not None:
        parts.append(_table(["rests on", ""], foundation_rows(found)))
    return "\n\n".join(parts) + "\n"


def _ladder(summary: Summary) -> str:
    rows = [[f"**EGG**{summary.estimate_note}", figures.ms(summary.candidate_ms), ""]]
    for rung in summary.rungs:
        time = figures.ms(rung.median_ms) if not rung.reason else f"not available: {rung.reason}"
        rows.append([rung.name, time, figures.interval(rung.speedup)])
    rows.append(["roofline floor", figures.ms(summary.floor_ms), ""])
    return _table(["", "median", "EGG's speedup over it"], rows)


def _path(summary: Summary) -> str:
    rows = [
        [
            str(step.attempt.plan.index),
            step.attempt.plan.stage,
            title_of(step.attempt),
            figures.ratio(step.attempt.plan.predicted_effect if step.attempt.plan.parent_id else None),
            figures.ratio(step.measured_effect),
            figures.ms(step.attempt.evaluation.candidate_ms),
        ]
        for step in summary.steps
    ]
    return _table(["attempt", "stage", "move", "predicted", "measured", "time"], rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_escape(cell) for cell in line) + " |" for line in lines)


def _escape(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|")
