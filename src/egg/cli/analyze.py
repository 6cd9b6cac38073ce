"""`egg analyze`: what a task costs at the least."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from egg import compose
from egg.reports import figures
from egg.schema.analysis import Analysis


def analyze(spec: str, inputs: str | None, as_json: bool) -> int:
    """Returns the exit status after the operators of every workload were printed."""
    task = compose.find_task(spec, inputs)
    device = compose.measured_device()
    analyses = compose.analyst().analyze(task, device)
    if as_json:
        found = {
            "task": task.name,
            "content_hash": task.content_hash,
            "device": device.model_dump(mode="json"),
            "workloads": [a.model_dump(mode="json") for a in analyses],
        }
        sys.stdout.write(compose.as_json(found))
        return 0
    console = Console()
    for analysis in analyses:
        console.print(Text(f"{task.name}, workload {analysis.workload}, on {device.name}", "bold"))
        console.print(_table(analysis))
        console.print(Text(_whole(analysis)))
    return 0


def _table(analysis: Analysis) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("value", no_wrap=True)
    table.add_column("operator", no_wrap=True)
    for name in ("FLOP", "bytes", "FLOP/byte", "floor"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("bound by", no_wrap=True)
    for op in analysis.ops:
        table.add_row(
            Text(op.name), Text(op.op), figures.count(op.flops), figures.count(op.bytes),
            f"{op.arithmetic_intensity:.2f}", figures.ms(op.floor_ms), op.bound,
        )  # fmt: skip
    return table


def _whole(analysis: Analysis) -> str:
    return (
        f"In all: {figures.count(analysis.flops, 'FLOP')}, at least {figures.count(analysis.min_bytes, 'B')}, "
        f"{analysis.arithmetic_intensity:.2f} FLOP/byte, floor {figures.ms(analysis.floor_ms)}, "
        f"bound by {analysis.bound}."
    )
