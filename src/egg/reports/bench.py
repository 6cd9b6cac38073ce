"""Candidates of one task side by side, as a rich renderable and as one JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from egg.reports import figures
from egg.reports.basis import foundation_table
from egg.reports.verification import DEFINITION, foundation_of, ladder, unclaimed, verification_data
from egg.schema.verification import Verification


def bench_table(found: Sequence[Verification]) -> RenderableType:
    """Returns a row for each candidate and workload, the ladder, and what the figures rest on."""
    passed = [f for f in found if f.passed]
    parts: list[RenderableType] = [Text(_headline(found), "bold"), Text("")]
    if passed:
        parts += [_times(found, passed[0]), Text(DEFINITION, "dim")]
    for one in found:
        if one.evaluation.not_claimed:
            parts += [Text(f"{one.candidate}: no speedup is claimed: {one.evaluation.not_claimed}")]
        if not one.passed:
            parts += [Text(""), Text(f"{one.candidate} was not timed", "bold red"), Text(one.explain())]
    if passed:
        parts += [Text(""), foundation_table(foundation_of(passed[0]))]
    return Group(*parts)


def bench_data(found: Sequence[Verification], settings: Mapping[str, str]) -> dict[str, Any]:
    """Returns all of it as plain JSON values: a verification for each candidate, in the order of the command line."""
    return {
        "schema_version": 1,
        "task": found[0].task,
        "settings": dict(settings),
        "definition": DEFINITION,
        "candidates": [verification_data(f) for f in found],
    }


def _headline(found: Sequence[Verification]) -> str:
    timed = [f for f in found if f.passed]
    head = f"{found[0].task} on {found[0].device}"
    if not timed:
        return f"{head}: nothing was timed"
    best = min(timed, key=lambda f: f.evaluation.candidate_ms or 0.0)
    if best.evaluation.barred:
        return f"{head}: barred: {best.evaluation.barred}"
    estimate = "" if best.attested else " (search estimate)"
    return f"{head}: {best.candidate} is the fastest, {figures.ms(best.evaluation.candidate_ms)} a call{estimate}"


def _times(found: Sequence[Verification], first: Verification) -> Table:
    """Returns the times of all candidates with their speedups over each rung, then the rungs themselves."""
    rungs = [rung for rung in ladder(first) if not rung.reason]
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("candidate")
    for name in ("p10", "p50", "p90", "clock", *(f"over {rung.name} [95 %]" for rung in rungs)):
        table.add_column(name, justify="right", no_wrap=not name.startswith("over"))
    for one in found:
        over = [figures.interval(r.speedup) + unclaimed(one) for r in ladder(one) if not r.reason]
        for at, timing in enumerate(one.evaluation.timings):
            name = one.candidate if len(one.workloads) == 1 else f"{one.candidate}, {timing.workload}"
            name += " (barred)" if one.evaluation.barred else ""
            times = (timing.candidate_p10_ms, timing.candidate_ms, timing.candidate_p90_ms)
            table.add_row(Text(name), *map(figures.ms, times), timing.method, *(over if at == 0 else []))
    for rung in rungs:
        table.add_row(Text(rung.name, "dim"), "", figures.ms(rung.median_ms), "", Text(rung.method, "dim"))
    for rung in ladder(first):
        if rung.reason:
            table.add_row(Text(rung.name, "dim"), "", "–", "", "", Text(f"not available: {rung.reason}", "dim"))
    return table
