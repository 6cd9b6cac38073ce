"""A check-up as a table and as one JSON document."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from egg.reports import figures
from egg.schema.checkup import Checkup, Finding

_STYLE = {"ok": "green", "missing": "red", "unknown": "yellow"}


def checkup_table(found: Checkup) -> RenderableType:
    """Returns a line for each finding by group, with what a missing one costs and how to mend it."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    group = ""
    for finding in found.findings:
        if finding.group != group:
            group = finding.group
            table.add_row(Text(group, "bold"), "", "")
        table.add_row(Text(f"  {finding.name}"), Text(finding.state, _STYLE[finding.state]), Text(_said(finding)))
    verdict = "Fit to make and measure kernels" if found.fit else "Not fit: see what is missing"
    return Group(table, Text(""), Text(f"{verdict}; looked at in {figures.seconds(found.wall_s)}", "bold"))


def checkup_data(found: Checkup) -> dict[str, Any]:
    """Returns the check-up as plain JSON values."""
    return {"schema_version": 1, "fit": found.fit, **found.model_dump(mode="json")}


def _said(finding: Finding) -> str:
    parts = [finding.said]
    if finding.state != "ok":
        parts += [finding.costs] * bool(finding.costs) + [f"to mend it: {finding.fix}"] * bool(finding.fix)
    return "; ".join(parts)
