"""Operators that give back what they got: no-op views and casts, x * 1, x - 0, clamps of what is in range already.

Each rule is exact for every input, NaN and infinities included. `x + 0` turns -0 into 0; it goes only where the
sign of a zero can't reach an operator that sees it. Saves the whole operator.
"""

from __future__ import annotations

from collections.abc import Callable

from egg.expert.rewrites.costs import node_bytes, node_flops
from egg.expert.rewrites.matching import Facts, argument, base, ints, number, redirected
from egg.expert.rewrites.ranges import value_range
from egg.expert.rewrites.rewrite import Rewrite, Site
from egg.schema.graph import Arg, Graph, Node, Ref

ALWAYS = ("clone", "contiguous", "alias", "detach", "lift_fresh_copy", "lift_fresh")
"""Operators that return their argument's values whatever the arguments are, in a graph without mutation."""

SAME_SHAPE = ("view", "reshape", "_unsafe_view", "expand", "flatten", "squeeze", "expand_as", "unflatten")
CASTS = ("_to_copy", "to", "type_as", "_assert_tensor_metadata")
DROPOUTS = ("dropout", "feature_dropout", "alpha_dropout")
SEES_SIGN_OF_ZERO = ("div", "reciprocal", "rsqrt", "atan2", "copysign", "signbit", "pow", "log", "true_divide")


def sites(graph: Graph) -> tuple[Site, ...]:
    """Returns the operators that change nothing."""
    facts = Facts(graph)
    found: list[Site] = []
    for node in graph.nodes:
        if _same_as(facts, node) is not None:
            found.append(
                Site(node.name, f"{base(node)} without effect", node_flops(facts, node), node_bytes(facts, node))
            )
    return tuple(found)


def apply(graph: Graph, site: Site) -> Graph:
    """Returns the graph with the operator's argument in its place."""
    facts = Facts(graph)
    same = _same_as(facts, facts.producers[site.at])
    if same is None:
        raise KeyError(site.at)
    return redirected(graph, {site.at: same})


def _same_as(facts: Facts, node: Node) -> str | None:
    """Returns the value that equals the node's result in values, shape and dtype, and may take its place."""
    out = node.outputs[0].spec
    if out is None or not facts.sole_result(node):
        return None
    for rule in RULES:
        same = rule(facts, node)
        spec = facts.specs.get(same) if same is not None else None
        if spec is None or same is None or spec.shape != out.shape or spec.dtype != out.dtype:
            continue
        return same if facts.may_stand_for(node.name, same) else None
    return None


def _first(node: Node) -> str | None:
    return node.args[0].ref if node.args and isinstance(node.args[0], Ref) else None


def _unchanged(facts: Facts, node: Node) -> str | None:
    name = base(node)
    if name in ALWAYS or name in SAME_SHAPE or name in CASTS:
        return _first(node)
    if name in DROPOUTS and argument(node, 2, "train") is False:
        return _first(node)
    return None


def _full_slice(facts: Facts, node: Node) -> str | None:
    return _first(node) if base(node) in ("slice", "narrow") and number(argument(node, 4, "step", 1)) == 1 else None


def _reordering(facts: Facts, node: Node) -> str | None:
    """Returns the value before a permutation that does nothing, alone or after the one before it."""
    order = permutation(facts, node)
    source = _first(node)
    if order is None or source is None:
        return None
    if order == tuple(range(len(order))):
        return source
    inner = facts.producers.get(source)
    before = permutation(facts, inner) if inner is not None else None
    if inner is None or before is None or tuple(before[d] for d in order) != tuple(range(len(order))):
        return None
    return _first(inner)


def permutation(facts: Facts, node: Node) -> tuple[int, ...] | None:
    """Returns where each dimension of the result comes from, for a permutation of any spelling."""
    spec = facts.spec(node.args[0]) if node.args else None
    if spec is None:
        return None
    rank = len(spec.shape)
    order = list(range(rank))
    match base(node):
        case "permute":
            dims = ints(node.args[1])
            return tuple(d % rank for d in dims) if dims is not None and rank else None
        case "transpose":
            pair = ints((node.args[1], node.args[2]))
            if pair is None or not rank:
                return None
            a, b = (d % rank for d in pair)
            order[a], order[b] = order[b], order[a]
            return tuple(order)
        case "t" | "numpy_T" | "mT":
            return tuple(reversed(order)) if rank <= 2 else None
        case _:
            return None


def _neutral(facts: Facts, node: Node) -> str | None:
    if node.op not in (
        "aten.mul.Tensor",
        "aten.div.Tensor",
        "aten.sub.Tensor",
        "aten.add.Tensor",
        "aten.pow.Tensor_Scalar",
    ):
        return None
    left, right = node.args[0], node.args[1]
    if base(node) in ("mul", "add") and isinstance(right, Ref) and number(left) is not None:
        left, right = right, left
    value = number(right)
    if value is None or not isinstance(left, Ref):
        return None
    match base(node):
        case "mul" | "div" | "pow":
            return left.ref if value == 1 else None
        case "sub":
            return left.ref if value == 0 else None
        case _:
            return left.ref if value == 0 and not _sign_of_zero_matters(facts, node.name) else None


def _sign_of_zero_matters(facts: Facts, name: str) -> bool:
    """Returns whether an operator downstream can tell -0 from 0."""
    seen, waiting = set[str](), [name]
    while waiting:
        for user in facts.users.get(waiting.pop(), []):
            if base(user) in SEES_SIGN_OF_ZERO:
                return True
            new = [v.name for v in user.outputs if v.name not in seen]
            seen.update(new)
            waiting.extend(new)
    return False


def _in_range(facts: Facts, node: Node) -> str | None:
    """Returns the argument of a clamp, relu or abs that lies in the kept range already; NaN passes through both."""
    source = _first(node)
    kept = _kept_range(node)
    if source is None or kept is None:
        return None
    low, high = value_range(facts, source)
    return source if kept[0] <= low and high <= kept[1] else None


def _kept_range(node: Node) -> tuple[float, float] | None:
    """Returns the range in which a node is the identity."""
    infinity = float("inf")
    match base(node):
        case "relu" | "abs" | "leaky_relu" | "prelu":
            return 0.0, infinity
        case "relu6":
            return 0.0, 6.0
        case "hardtanh":
            return _bound(argument(node, 1, "min_val", -1.0), -1.0), _bound(argument(node, 2, "max_val", 1.0), 1.0)
        case "clamp" if node.op == "aten.clamp.default":
            return _bound(argument(node, 1, "min"), -infinity), _bound(argument(node, 2, "max"), infinity)
        case "clamp_min" if node.op == "aten.clamp_min.default":
            return _bound(argument(node, 1, "min"), infinity), infinity
        case "clamp_max" if node.op == "aten.clamp_max.default":
            return -infinity, _bound(argument(node, 1, "max"), -infinity)
        case _:
            return None


def _bound(arg: Arg, default: float) -> float:
    found = number(arg)
    return default if found is None else float(found)


RULES: tuple[Callable[[Facts, Node], str | None], ...] = (_unchanged, _full_slice, _reordering, _neutral, _in_range)

REWRITE = Rewrite("identities", "algebra.dead-and-duplicate", sites, apply)
