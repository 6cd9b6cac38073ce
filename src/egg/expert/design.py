"""A candidate's structure, rebuilt from the ids of the options that led to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args, get_type_hints

from egg.expert.groups import Grouping, group
from egg.expert.ir import Library, Program
from egg.expert.loops import Layout, Native, Schedule, read_names
from egg.expert.lower import lower
from egg.expert.products import loop_products, reducible
from egg.expert.rewrites.costs import VIEWS
from egg.expert.rewrites.matching import Facts, base
from egg.expert.rewrites.registry import apply_all, sites_of
from egg.expert.schedule import schedule
from egg.expert.simplify import simplify
from egg.expert.templates import is_template
from egg.schema.device import Device
from egg.schema.graph import Graph

LEVELS: dict[str, Literal["pointwise", "rows"]] = {
    "fuse.rows": "rows",
    "fuse.epilogue": "rows",
    "fuse.pointwise": "pointwise",
}
"""Moves that decide how much shares a kernel. An epilogue is rows around library calls."""

SWITCHES = {"loops.vector-axis": "vector", "scratch": "keep", "in-place": "in_place"}
"""Moves `<move>=<value>` that set a field of the grouping."""

LOOPS = "loops.matmul-as-rows"
SPLIT = "loops.split-reduction"
ONLINE = "loops.online-softmax"

VIEW = "view"
"""Reason of a library statement that only looks at a value in another way."""


@dataclass(frozen=True)
class Design:
    """What is computed and how it is cut into kernels, before any number is chosen."""

    graphs: tuple[Graph, ...]
    """One a workload, rewritten."""
    grouping: Grouping | None = None
    """None: every operator stays a torch call."""

    def program(self, workload: int) -> Program:
        """Returns the tensor program of a workload."""
        graph = self.graphs[workload]
        if self.grouping is None:
            calls = tuple(Library(node, "not lowered") for node in graph.nodes)
            return Program(graph.inputs, calls, graph.returns, graph.mutations, graph.specs())
        constants = {i.name: list(i.value) for i in graph.inputs if i.value is not None}
        return simplify(views_kept(lower(graph, constants), graph, self.grouping.loops))

    def layout(self, workload: int, program: Program, device: Device) -> Layout:
        """Returns the steps of a workload. Kernel names are unique among the workloads."""
        if self.grouping is None:
            return Layout(tuple(s for s in program.statements if isinstance(s, Library)))
        loops = reducible(program, self.grouping.loops)
        layout = group(program, replace(self.grouping, loops=loops), device)
        if workload == 0:
            return layout
        named = [replace(s, name=f"w{workload}_{s.name}") if isinstance(s, Native) else s for s in layout.steps]
        return replace(layout, steps=tuple(named))


def design_of(graphs: Sequence[Graph], structure: Sequence[str]) -> Design:
    """Returns the design that a sequence of structure options gives. Raises ValueError for an unknown option."""
    design = Design(tuple(graphs))
    for option_id in structure:
        design = apply_option(design, option_id)
    return design


def apply_option(design: Design, option_id: str) -> Design:
    """Returns the design after one structure option: `move`, `move@node` or `move=value`."""
    move, _, at = option_id.partition("@")
    move, _, value = move.partition("=")
    grouping = design.grouping or Grouping()
    if move.startswith("algebra."):
        return replace(design, graphs=tuple(_rewritten(g, move, at) for g in design.graphs))
    if move in LEVELS:
        return replace(design, grouping=replace(grouping, level=LEVELS[move]))
    if move == LOOPS:
        names = {at} if at else {name for graph in design.graphs for name in loop_products(graph)}
        return replace(design, grouping=replace(grouping, loops=grouping.loops | names))
    if move == SPLIT:
        return replace(design, grouping=replace(grouping, mapping="inner"))
    if move == ONLINE:
        return replace(design, grouping=replace(grouping, online=True))
    if move in SWITCHES and value in switch_values(move):
        return replace(design, grouping=replace(grouping, **{SWITCHES[move]: value}))
    raise ValueError(f"{option_id!r} is no structure option of the built-in author")


def views_kept(program: Program, graph: Graph, loops: frozenset[str] = frozenset()) -> Program:
    """Returns the program with views that only library calls read as calls too: torch makes them without a copy.

    `loops` are the calls that are going to be loops, which read through views by themselves.
    Templates read dense values.
    """
    users = Facts(graph).users
    found = [s.node for s in program.statements if isinstance(s, Library)]
    calls = {node.name for node in found if not is_template(node, program.specs)} - loops
    outputs = set(graph.output_names())
    views: dict[str, Library] = {}
    for node in reversed(graph.nodes):
        readers = [user.name for user in users.get(node.name, [])]
        is_view = base(node) in VIEWS and len(node.outputs) == 1 and node.name not in outputs
        if is_view and readers and all(name in calls or name in views for name in readers):
            views[node.name] = Library(node, VIEW)
    return replace(program, statements=tuple(views.get(s.name, s) for s in program.statements))


def switch_values(move: str) -> tuple[str, ...]:
    """Returns the values that a switch can have, the one that is in use unless set first."""
    return tuple(get_args(get_type_hints(Grouping)[SWITCHES[move]]))


def schedules(layout: Layout, device: Device) -> dict[str, Schedule]:
    """Returns the first schedule of every kernel and template, by its name."""
    found: dict[str, Schedule] = {}
    read_later = frozenset[str]()
    for step in reversed(layout.steps):
        if isinstance(step, Native):
            found[step.name] = schedule(step, device, read_later)
        read_later |= read_names(step)
    return dict(reversed(found.items()))


def _rewritten(graph: Graph, move: str, at: str) -> Graph:
    if not at:
        return apply_all(graph, move)
    for rewrite, site in sites_of(graph, move):
        if site.at == at:
            return rewrite.apply(graph, site)
    return graph
