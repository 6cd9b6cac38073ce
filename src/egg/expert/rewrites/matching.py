"""Questions that every pattern asks of a graph, and the two edits that every rewrite makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from egg.schema import graph as g
from egg.schema.graph import Arg, Graph, Node, Ref, TensorSpec, Tree, node_refs

EXACT_FLOATS = ("float32", "float64")
"""Dtypes whose sums may be reordered: half types round where the reference rounds, so algebra on them is not free."""

RANDOM = ("rand", "dropout", "bernoulli", "normal", "multinomial", "uniform", "poisson", "exponential", "empty")
"""Parts of operator names whose results differ from call to call."""


class Facts:
    """An indexed graph: producers, users, shapes and outputs by value name."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @cached_property
    def specs(self) -> dict[str, TensorSpec]:
        """The spec of every tensor value."""
        return self.graph.specs()

    @cached_property
    def producers(self) -> dict[str, Node]:
        """The node that makes each value."""
        return self.graph.producers()

    @cached_property
    def users(self) -> dict[str, list[Node]]:
        """The nodes that use each value, a node once for each use."""
        found: dict[str, list[Node]] = {}
        for node in self.graph.nodes:
            for name in node_refs(node):
                found.setdefault(name, []).append(node)
        return found

    @cached_property
    def outputs(self) -> frozenset[str]:
        """The values that leave the graph, changed state included."""
        return frozenset(self.graph.output_names())

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The values that enter the graph."""
        return frozenset(i.name for i in self.graph.inputs)

    def node(self, arg: Arg) -> Node | None:
        """Returns the node that makes an argument; None for a literal or a graph input."""
        return self.producers.get(arg.ref) if isinstance(arg, Ref) else None

    def spec(self, arg: Arg) -> TensorSpec | None:
        """Returns the spec of an argument that is a tensor."""
        return self.specs.get(arg.ref) if isinstance(arg, Ref) else None

    def only_use(self, name: str) -> bool:
        """Returns whether a value is used once, by one node, and does not leave the graph."""
        return len(self.users.get(name, [])) == 1 and name not in self.outputs

    def sole_result(self, node: Node) -> bool:
        """Returns whether nothing but the first result of a node is used."""
        return not any(v.name in self.users or v.name in self.outputs for v in node.outputs[1:])

    def may_stand_for(self, old: str, new: str) -> bool:
        """Returns whether `new` may take the place of `old` without an output that shares storage with another."""
        return old not in self.outputs or (new not in self.inputs and new not in self.outputs)


def base(node: Node) -> str:
    """Returns the operator's name without namespace and overload: `add` for `aten.add.Tensor`."""
    parts = node.op.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "aten" else node.op


def argument(node: Node, position: int, name: str, default: Arg = None) -> Arg:
    """Returns an argument given by position or by name."""
    return node.args[position] if position < len(node.args) else node.kwargs.get(name, default)


def number(arg: Arg) -> int | float | None:
    """Returns a numeric literal; None for everything else, truth values included."""
    return arg if isinstance(arg, int | float) and not isinstance(arg, bool) else None


def ints(arg: Arg) -> tuple[int, ...] | None:
    """Returns a list of integers; a single integer is a list of one."""
    if isinstance(arg, int) and not isinstance(arg, bool):
        return (arg,)
    if isinstance(arg, tuple):
        found = tuple(a for a in arg if isinstance(a, int) and not isinstance(a, bool))
        return found if len(found) == len(arg) else None
    return None


def is_random(node: Node) -> bool:
    """Returns whether two calls with equal arguments may give different results."""
    name = base(node)
    if name in ("dropout", "feature_dropout", "alpha_dropout"):
        return argument(node, 2, "train") is not False
    return any(part in name for part in RANDOM)


@dataclass(frozen=True)
class Reduction:
    """A sum or mean over dimensions of one tensor."""

    source: str
    kind: str
    dims: tuple[int, ...]
    """Non-negative, ascending."""
    keepdim: bool


def reduction(facts: Facts, node: Node) -> Reduction | None:
    """Returns the sum or mean that a node is, adaptive average pooling to one position included; else None."""
    source = node.args[0] if node.args else None
    spec = facts.spec(source)
    if not isinstance(source, Ref) or spec is None or node.outputs[0].spec is None:
        return None
    rank = len(spec.shape)
    if node.outputs[0].spec.dtype != spec.dtype:
        return None
    match node.op.removeprefix("aten."):
        case "sum.default" | "mean.default":
            return Reduction(source.ref, base(node), tuple(range(rank)), False)
        case "sum.dim_IntList" | "mean.dim":
            given = ints(argument(node, 1, "dim"))
            dims = tuple(sorted(d % rank for d in given)) if given else tuple(range(rank))
            return Reduction(source.ref, base(node), dims, argument(node, 2, "keepdim", False) is True)
        case "adaptive_avg_pool1d.default" | "adaptive_avg_pool2d.default" | "adaptive_avg_pool3d.default":
            size = ints(argument(node, 1, "output_size"))
            spatial = int(base(node)[-2])
            if size is not None and all(n == 1 for n in size) and rank >= spatial:
                return Reduction(source.ref, "mean", tuple(range(rank - spatial, rank)), True)
        case _:
            pass
    return None


def replaced(graph: Graph, at: str, nodes: Sequence[Node]) -> Graph:
    """Returns the graph with the node that makes `at` replaced by `nodes`, and without what nobody reads then."""
    if not any(n.name == at for n in graph.nodes):
        raise KeyError(at)
    swapped = [new for old in graph.nodes for new in (nodes if old.name == at else (old,))]
    return pruned(graph.updated(nodes=tuple(swapped)))


def redirected(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Returns the graph with every use of a key of `names` turned to its value, and without what nobody reads then."""
    nodes = tuple(_renamed(n, names) for n in graph.nodes)
    mutations = tuple(m.updated(value=names.get(m.value, m.value)) for m in graph.mutations)
    return pruned(graph.updated(nodes=nodes, returns=_renamed_tree(graph.returns, names), mutations=mutations))


def pruned(graph: Graph) -> Graph:
    """Returns the graph without nodes whose results reach no output.

    Inputs stay, as they are the task's interface; so do draws of random numbers, as the next draw depends on them.
    """
    needed = set(graph.output_names())
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if is_random(node) or any(v.name in needed for v in node.outputs):
            kept.append(node)
            needed.update(node_refs(node))
    return graph if len(kept) == len(graph.nodes) else graph.updated(nodes=tuple(reversed(kept)))


def numel(shape: Iterable[int]) -> int:
    """Returns the number of elements of a shape."""
    return prod(shape)


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    if not any(name in names for name in node_refs(node)):
        return node
    kwargs = {k: _renamed_arg(a, names) for k, a in node.kwargs.items()}
    return node.updated(args=tuple(_renamed_arg(a, names) for a in node.args), kwargs=kwargs)


def _renamed_arg(arg: Arg, names: Mapping[str, str]) -> Arg:
    match arg:
        case Ref(ref=name):
            return Ref(ref=names.get(name, name))
        case tuple():
            return tuple(_renamed_arg(a, names) for a in arg)
        case _:
            return arg


def _renamed_tree(tree: Tree, names: Mapping[str, str]) -> Tree:
    match tree:
        case Ref(ref=name):
            return Ref(ref=names.get(name, name))
        case g.Sequence(items=items) | g.Mapping(items=items):
            return tree.updated(items=tuple(_renamed_tree(t, names) for t in items))
        case _:
            return tree
