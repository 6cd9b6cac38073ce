"""The smallest step back after a failure."""

from __future__ import annotations

from collections.abc import Sequence

from egg.expert.design import LEVELS, design_of
from egg.expert.rewrites.registry import sites_of
from egg.schema.candidate import Candidate
from egg.schema.graph import Graph
from egg.schema.plan import StagePlan


def step_back(graphs: Sequence[Graph], failed: Candidate, plan: StagePlan) -> tuple[str, ...] | None:
    """Returns a structure that does less than the failed one and more than its parent; None where there is none.

    Row fusion becomes pointwise fusion. A rewrite at all of its places becomes the same at the first place alone.
    Everything else, a number included, has no half: then the parent is the answer.
    """
    if plan.stage != "structure" or not failed.structure:
        return None
    *before, last = failed.structure
    if LEVELS.get(last) == "rows" and "fuse.pointwise" not in before:
        return (*before, "fuse.pointwise")
    if last.startswith("algebra.") and "@" not in last:
        design = design_of(graphs, before)
        places = [site.at for graph in design.graphs for _, site in sites_of(graph, last)]
        if len(places) > 1:
            return (*before, f"{last}@{places[0]}")
    return None
