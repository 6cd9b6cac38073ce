"""What a rewrite is: a named function from a graph and a place in it to a graph that does less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from egg.schema.graph import Graph


@dataclass(frozen=True)
class Site:
    """A place where a rewrite applies, with what it saves there."""

    at: str
    """Name of the value whose node is replaced; stable, as names of results survive every rewrite."""
    title: str
    """What happens there, in a few words."""
    saves_flops: int = 0
    saves_bytes: int = 0
    """Negative where the rewrite pays with one to save on the other."""


@dataclass(frozen=True)
class Rewrite:
    """One rule of algebra on graphs."""

    name: str
    move: str
    """The move that it belongs to, as principles list it."""
    sites: Callable[[Graph], tuple[Site, ...]]
    """The places where it is legal and saves something."""
    apply: Callable[[Graph, Site], Graph]
    """The graph with the rule applied at one of its sites. Raises KeyError for a place that the graph has not."""
