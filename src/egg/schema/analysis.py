"""What a task costs at the least, and what binds it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from egg.schema.base import Record
from egg.schema.graph import Graph

Bound = Literal["memory", "compute", "launch"]
Fact = bool | int | float | str


class OpCost(Record):
    """The cost of one node of the graph, run alone."""

    name: str
    op: str
    flops: int
    bytes: int
    """Inputs read once plus outputs written once; 0 for a view."""
    arithmetic_intensity: float
    """FLOPs a byte; 0 where nothing moves."""
    floor_ms: float
    """max(bytes / bandwidth, flops / peak) on the device."""
    bound: Bound


class Analysis(Record):
    """The graph of one workload with its costs on one device."""

    task_hash: str
    workload: str
    graph: Graph
    ops: tuple[OpCost, ...]
    flops: int
    min_bytes: int
    """Every task input, used parameter and output counted once."""
    arithmetic_intensity: float
    floor_ms: float
    """Roofline floor of the whole task: max(min_bytes / bandwidth, flops / peak)."""
    bound: Bound
    facts: dict[str, Fact] = Field(default_factory=dict)
    """Named facts that principles test; `knowledge/facts.md` lists them."""
    export_s: float = 0.0
