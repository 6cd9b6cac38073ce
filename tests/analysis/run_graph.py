"""Runs a recorded graph with torch, to hold it against the module that it came from."""

from __future__ import annotations

from typing import Any

import torch

from egg.analysis.export import constants
from egg.schema.graph import Graph, Mapping, Node, Ref, Sequence, Symbol, Tree
from egg.schema.task import Task
from egg.tasks.load import Loaded, flatten_leaves, materialize


def run_task(task: Task, graph: Graph, seed: int = 3) -> tuple[Any, Any, dict[str, torch.Tensor], Loaded]:
    """Returns what the module and what its graph return, the graph's new state by input name, and the module."""
    workload = task.workloads[0]
    values = input_values(graph, materialize(task, workload, seed))
    loaded = materialize(task, workload, seed)
    torch.manual_seed(0)
    expected = loaded.module(*loaded.args, **loaded.kwargs)
    torch.manual_seed(0)
    for node in graph.nodes:
        run_node(node, values)
    state = {m.target: values[m.value] for m in graph.mutations}
    return expected, tree_value(graph.returns, values), state, loaded


def input_values(graph: Graph, loaded: Loaded) -> dict[str, Any]:
    """Returns the value of each graph input."""
    leaves = dict(flatten_leaves(loaded.args, loaded.kwargs))
    found: dict[str, Any] = dict(constants(graph))
    for i in graph.inputs:
        if i.kind == "input":
            found[i.name] = leaves[i.path]
        elif i.kind != "constant":
            owner, _, name = str(i.path[0]).rpartition(".")
            found[i.name] = getattr(loaded.module.get_submodule(owner), name)
    return found


def run_node(node: Node, values: dict[str, Any]) -> None:
    """Computes one node and checks shape and dtype against its record."""
    namespace, name, overload = node.op.split(".")
    function = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    result = function(
        *(value_of(a, values) for a in node.args), **{k: value_of(a, values) for k, a in node.kwargs.items()}
    )
    results = result if isinstance(result, tuple | list) else [result]
    for value, item in zip(node.outputs, results, strict=True):
        values[value.name] = item
        if value.spec is not None and not name.startswith("_native_batch_norm_legit_no_training"):
            assert tuple(item.shape) == value.spec.shape
            assert str(item.dtype) == f"torch.{value.spec.dtype}"
            assert not value.spec.stride or tuple(item.stride()) == value.spec.stride


def value_of(arg: Any, values: dict[str, Any]) -> Any:
    """Returns the value of an argument."""
    match arg:
        case Ref(ref=name):
            return values[name]
        case Symbol(kind="device", text=text):
            return torch.device(text)
        case Symbol(text=text):
            return getattr(torch, text)
        case tuple():
            return [value_of(item, values) for item in arg]
        case _:
            return arg


def tree_value(tree: Tree, values: dict[str, Any]) -> Any:
    """Returns what `forward` returns, from the values of a graph."""
    match tree:
        case Ref(ref=name):
            return values[name]
        case Sequence(kind=kind, items=items):
            return (list if kind == "list" else tuple)(tree_value(item, values) for item in items)
        case Mapping(keys=keys, items=items):
            return {key: tree_value(item, values) for key, item in zip(keys, items, strict=True)}
        case _:
            return tree
