"""A sum pushed through linear operators, up to a product or convolution whose full result is then never needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from egg.expert.rewrites.building import Draft
from egg.expert.rewrites.matching import (
    EXACT_FLOATS,
    Facts,
    Reduction,
    argument,
    base,
    number,
    numel,
    reduction,
    replaced,
)
from egg.expert.rewrites.rewrite import Site
from egg.schema.graph import Arg, Graph, Node, Ref

PASSES_THROUGH = ("clone", "contiguous", "alias", "detach")


@dataclass(frozen=True)
class Path:
    """The linear operators from a reduction up to a product, each with the operand that leads there."""

    steps: tuple[tuple[Node, str], ...]
    core: Node


def path_to_core(facts: Facts, found: Reduction, is_core: Callable[[Node], bool]) -> Path | None:
    """Returns the way from a reduction to a product or convolution, through linear operators that nobody else reads."""
    if facts.specs[found.source].dtype not in EXACT_FLOATS:
        return None
    return _path(facts, found.source, found.dims, is_core)


def pushed(
    graph: Graph,
    site: Site,
    path_of: Callable[[Facts, Reduction], Path | None],
    core_sum: Callable[[Facts, Draft, Node, Sequence[int]], Ref],
) -> Graph:
    """Returns the graph with the reduction at `site` pushed up its path, to where `core_sum` sums the core itself."""
    facts = Facts(graph)
    what = reduction(facts, facts.producers[site.at])
    path = path_of(facts, what) if what is not None else None
    if what is None or path is None:
        raise KeyError(site.at)
    draft = Draft(graph, site.at)
    total = _push_sum(facts, draft, path, what.dims, core_sum(facts, draft, path.core, what.dims))
    return replaced(graph, site.at, _finish_reduction(facts, draft, what, total))


def _push_sum(facts: Facts, draft: Draft, path: Path, dims: Sequence[int], core: Ref) -> Ref:
    """Returns the sum over `dims` of the value that the path starts from, given that of its product; dims are kept."""
    summed = core
    for node, through in reversed(path.steps):
        summed = _step(facts, draft, node, through, dims, summed)
    return summed


def _path(facts: Facts, name: str, dims: Sequence[int], is_core: Callable[[Node], bool]) -> Path | None:
    node = facts.producers.get(name)
    if node is None or not facts.only_use(name) or node.outputs[0].spec is None:
        return None
    if is_core(node):
        return Path((), node)
    for operand in _linear_operands(facts, node, dims):
        rest = _path(facts, operand, dims, is_core)
        if rest is not None:
            return Path(((node, operand), *rest.steps), rest.core)
    return None


def _step(facts: Facts, draft: Draft, node: Node, through: str, dims: Sequence[int], summed: Ref) -> Ref:
    operator = base(node)
    if operator in PASSES_THROUGH:
        return summed
    if operator == "neg":
        return draft.binary("mul", summed, -1)
    first = node.args[0] == Ref(ref=through)
    other = _operand(node.args[1] if first else node.args[0])
    if operator in ("mul", "div"):
        return draft.binary(operator, summed, other)
    shape = facts.specs[node.name].shape
    if isinstance(other, Ref):
        term: Ref | int | float = _sum_broadcast(draft, other, shape, dims)
    else:
        term = other * numel(shape[d] for d in dims)
    if operator == "sub" and not first:
        return draft.binary("add", draft.binary("mul", summed, -1), term)
    return draft.binary(operator, summed, term)


def _finish_reduction(facts: Facts, draft: Draft, found: Reduction, total: Ref) -> tuple[Node, ...]:
    """Returns the nodes of the draft once the pushed sum is divided for a mean and has the shape of the reduction."""
    if found.kind == "mean":
        total = draft.binary("div", total, numel(facts.specs[found.source].shape[d] for d in found.dims))
    return draft.finish(total)


def reductions(facts: Facts) -> list[tuple[Node, Reduction]]:
    """Returns the sums and means of a graph that shorten something."""
    found: list[tuple[Node, Reduction]] = []
    for node in facts.graph.nodes:
        what = reduction(facts, node)
        if what is not None and numel(facts.specs[what.source].shape[d] for d in what.dims) > 1:
            found.append((node, what))
    return found


def _operand(arg: Arg) -> Ref | int | float:
    found = number(arg)
    if found is not None:
        return found
    if isinstance(arg, Ref):
        return arg
    raise ValueError(f"{arg!r} is neither a number nor a tensor")


def _linear_operands(facts: Facts, node: Node, dims: Sequence[int]) -> tuple[str, ...]:
    """Returns the operands in which a node is linear over `dims`, the other one held fixed."""
    operator = base(node)
    out = node.outputs[0].spec
    if out is None or not node.args or number(argument(node, 2, "alpha", 1)) != 1:
        return ()
    if operator in (*PASSES_THROUGH, "neg"):
        return (node.args[0].ref,) if isinstance(node.args[0], Ref) else ()
    if operator not in ("add", "sub", "mul", "div") or len(node.args) < 2 or "rounding_mode" in node.kwargs:
        return ()
    pairs = [(node.args[0], node.args[1])]
    if operator != "div":
        pairs.append((node.args[1], node.args[0]))
    return tuple(
        operand.ref
        for operand, other in pairs
        if isinstance(operand, Ref)
        and (facts.specs[operand.ref].shape, facts.specs[operand.ref].dtype) == (out.shape, out.dtype)
        and _may_be_other(facts, operator, other, out.shape, out.dtype, dims)
    )


def _may_be_other(
    facts: Facts, operator: str, other: Arg, shape: Sequence[int], dtype: str, dims: Sequence[int]
) -> bool:
    if number(other) is not None:
        return True
    spec = facts.spec(other)
    if spec is None or spec.dtype != dtype:
        return False
    if operator in ("add", "sub"):
        return True
    offset = len(shape) - len(spec.shape)
    return all(d < offset or spec.shape[d - offset] == 1 for d in dims)


def _sum_broadcast(draft: Draft, term: Ref, shape: Sequence[int], dims: Sequence[int]) -> Ref:
    """Returns the sum over `dims` of `term` as if it had been expanded to `shape`."""
    own = draft.shape(term)
    full = draft.reshape(term, (1,) * (len(shape) - len(own)) + own) if len(own) < len(shape) else term
    real = [d for d in dims if draft.shape(full)[d] > 1]
    copies = numel(shape[d] for d in dims if draft.shape(full)[d] == 1)
    total = draft.sum(full, real) if real else full
    return draft.binary("mul", total, copies) if copies > 1 else total
