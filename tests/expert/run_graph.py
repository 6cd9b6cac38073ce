"""Runs an operator graph with torch itself, so that a rewritten graph can be held against the original."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from egg.analysis.export import graph_of, trace
from egg.expert.rewrites.matching import pruned
from egg.schema.graph import Arg, Graph, Ref, Symbol, Value, node_refs, tree_refs
from egg.tasks.load import Loaded


def graph_for(module: nn.Module, *args: Any, **kwargs: Any) -> Graph:
    """Returns the exported graph of a module for one call."""
    with torch.no_grad():
        return graph_of(trace(Loaded(module, args, kwargs)))


def values_for(graph: Graph, module: nn.Module, *args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:
    """Returns the tensors that enter the graph, by name."""
    found: dict[str, torch.Tensor] = {}
    state = dict(module.named_parameters()) | dict(module.named_buffers())
    for entry in graph.inputs:
        if entry.kind == "input":
            leaf: Any = (*args, kwargs) if isinstance(entry.path[0], int) else kwargs
            for step in entry.path:
                leaf = leaf[step]
            found[entry.name] = leaf
        elif entry.kind == "constant":
            made = torch.tensor(entry.value, dtype=getattr(torch, entry.spec.dtype))
            found[entry.name] = made.reshape(entry.spec.shape)
        else:
            found[entry.name] = state[str(entry.path[0])].detach()
    return found


def run_graph(graph: Graph, values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns every output of the graph by value name, changed state included. Checks each node's shape and dtype."""
    known: dict[str, Any] = dict(values)
    double = all(v.dtype != torch.float32 for v in values.values())
    for value, result in _results(graph, known, double):
        if value.spec is not None:
            assert tuple(result.shape) == value.spec.shape, f"{value.name}: {result.shape} {value.spec.shape}"
    return {name: known[name] for name in graph.output_names()}


def is_true(graph: Graph, values: Mapping[str, torch.Tensor]) -> bool:
    """Returns whether torch computes what is read or returned in the shapes and dtypes that the graph has for it.

    What a cast reads may have any dtype, as new running statistics of half precision do.
    """
    readers = [node for node in graph.nodes if node.op != "aten._to_copy.default"]
    read = {*tree_refs(graph.returns), *(name for node in readers for name in node_refs(node))}
    return all(
        (tuple(result.shape), str(result.dtype).removeprefix("torch.")) == (value.spec.shape, value.spec.dtype)
        for value, result in _results(graph, dict(values), False)
        if value.spec is not None and value.name in read
    )


def _results(graph: Graph, known: dict[str, Any], double: bool) -> Iterator[tuple[Value, Any]]:
    """Yields each value of the nodes with what torch computes for it, and adds it to the known ones."""
    with torch.no_grad():
        for node in graph.nodes:
            made = _operator(node.op)(
                *(_value(a, known, double) for a in node.args),
                **{k: _value(a, known, double) for k, a in node.kwargs.items()},
            )
            results = made if isinstance(made, tuple | list) else (made,)
            for value, result in zip(node.outputs, results, strict=True):
                known[value.name] = result
                yield value, result


def as_double(values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns the values with floating ones in float64."""
    return {k: v.double() if v.is_floating_point() else v for k, v in values.items()}


def assert_same(before: Graph, after: Graph, values: Mapping[str, torch.Tensor], tolerance: float = 1e-11) -> None:
    """Checks in float64 that two graphs have the same interface and give the same outputs."""
    assert before.inputs == after.inputs
    assert pruned(after) == after
    left, right = run_graph(before, as_double(values)), run_graph(after, as_double(values))
    assert before.returns == after.returns or len(left) == len(right)
    for a, b in zip(before.output_names(), after.output_names(), strict=True):
        finite = left[a][left[a].isfinite()]
        scale = float(finite.abs().max()) if finite.numel() else 0.0
        torch.testing.assert_close(right[b], left[a], rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def _operator(name: str) -> Any:
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _value(arg: Arg, known: Mapping[str, Any], double: bool) -> Any:
    match arg:
        case Ref(ref=name):
            return known[name]
        case Symbol(kind="device", text=text):
            return torch.device(text)
        case Symbol(kind="dtype", text="float32") if double:
            return torch.float64
        case Symbol(text=text):
            return getattr(torch, text)
        case tuple():
            return [_value(a, known, double) for a in arg]
        case _:
            return arg
