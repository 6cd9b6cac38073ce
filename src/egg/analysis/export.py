"""A task's workload as a functional operator graph.

`torch.export` traces the module on fake tensors, so a task of any size needs no memory. The trace is functionalised
with an empty decomposition table, which keeps composite operators (`linear`, `layer_norm`, attention) whole.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.utils import _pytree as pytree

from egg.analysis.nodes import NodeReader, dead_nodes_removed
from egg.errors import TaskError
from egg.schema.graph import Graph, GraphInput, Mapping, Mutation, Ref, Sequence, Tree
from egg.schema.task import Task, Workload
from egg.tasks.load import Loaded, flatten_leaves, place_of, recurrent_layers_whole, sketch, spec_of, task_error

CONSTANT_LIMIT = 2**20
"""Elements of a tensor constant that the graph records at most."""

INPUT_KINDS = {
    InputKind.USER_INPUT: "input",
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}


class _LostConstant(Exception):
    """A constant has no values because it was made on fake tensors."""


def export_graph(task: Task, workload: Workload) -> Graph:
    """Returns the operator graph of a workload. Raises TaskError where the module can't be traced.

    Fake tensors come first; what needs values (a tensor kept in a list of the module) is traced again on real ones.
    """
    try:
        return graph_of(trace(sketch(task, workload).loaded))
    except TaskError:
        raise
    except Exception:
        loaded = sketch(task, workload, fake=False).loaded
    try:
        return graph_of(trace(loaded))
    except TaskError:
        raise
    except Exception as error:
        raise _export_error(error, task, workload) from error


def _export_error(error: Exception, task: Task, workload: Workload) -> TaskError:
    doing = f"exporting workload {workload.name!r} as one graph"
    if "DataDependent" in type(error).__name__:
        return TaskError(f"{place_of(error, task.entry)}: {doing} failed: what forward does depends on tensor values")
    return task_error(error, task.entry, doing)


@contextmanager
def _quiet() -> Generator[None]:
    """Keeps what torch says and prints about the trace to itself; what matters is raised."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def trace(loaded: Loaded) -> ExportedProgram:
    """Returns the functional exported program. Raises whatever torch.export does."""
    register_tensor_attributes(loaded.module)
    with _quiet(), recurrent_layers_whole():
        program = torch.export.export(loaded.module, loaded.args, loaded.kwargs, strict=False)
        return program.run_decompositions({})


def register_tensor_attributes(module: nn.Module) -> None:
    """Makes each plain tensor attribute a buffer outside the `state_dict`, so that its changes are traced."""
    for part in module.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor):
                delattr(part, name)
                part.register_buffer(name, value, persistent=False)


def graph_of(program: ExportedProgram) -> Graph:
    """Returns the record of a functional exported program."""
    reader = NodeReader()
    nodes = [node for fx_node in program.graph.nodes if (node := reader.read(fx_node)) is not None]
    outputs = program.graph_signature.output_specs
    inputs = _inputs(program)
    by_target = {i.path[0]: i.name for i in inputs if i.kind != "input"} | {i.name: i.name for i in inputs}
    mutations = tuple(
        Mutation(target=by_target[spec.target or ""], value=reader.resolve(spec.arg.name))
        for spec in outputs
        if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION)
    )
    returned = [_returned(spec.arg, reader) for spec in outputs if spec.kind is OutputKind.USER_OUTPUT]
    out_spec = program.call_spec.out_spec
    returns = _tree(pytree.tree_unflatten(returned, out_spec) if out_spec else tuple(returned))
    graph = Graph(inputs=inputs, nodes=tuple(nodes), returns=returns, mutations=mutations)
    return dead_nodes_removed(graph)


def constants(graph: Graph) -> dict[str, torch.Tensor]:
    """Returns the tensor constants of a graph by name, rebuilt from their recorded values."""
    return {
        i.name: torch.tensor(i.value, dtype=getattr(torch, i.spec.dtype)).reshape(i.spec.shape)
        for i in graph.inputs
        if i.kind == "constant" and i.value is not None
    }


def _inputs(program: ExportedProgram) -> tuple[GraphInput, ...]:
    fakes = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    in_spec = program.call_spec.in_spec
    assert in_spec is not None
    args, kwargs = pytree.tree_unflatten(list(range(in_spec.num_leaves)), in_spec)
    paths = [path for path, _ in flatten_leaves(tuple(args), kwargs)]
    found: list[GraphInput] = []
    for spec in program.graph_signature.input_specs:
        path = paths.pop(0) if spec.kind is InputKind.USER_INPUT else (spec.target or "",)
        if not isinstance(spec.arg, TensorArgument):
            continue  # a number or None, which the trace has taken in
        kind = INPUT_KINDS.get(spec.kind)
        if kind is None:
            raise TaskError(f"input {spec.arg.name!r} of kind {spec.kind.name} can't be recorded")
        value = _constant_value(program.constants[str(path[0])]) if kind == "constant" else None
        found.append(
            GraphInput.model_validate(
                {
                    "name": spec.arg.name,
                    "kind": kind,
                    "path": path,
                    "spec": spec_of(fakes[spec.arg.name]),
                    "value": value,
                }
            )
        )
    return tuple(found)


def _constant_value(constant: Any) -> tuple[bool | int | float, ...]:
    if constant.numel() > CONSTANT_LIMIT:
        raise TaskError(
            f"a tensor constant of shape {list(constant.shape)} is too large to record; make it a buffer: "
            "self.register_buffer(name, tensor)"
        )
    if type(constant) is not torch.Tensor:
        raise _LostConstant
    return tuple(constant.detach().flatten().tolist())


def _returned(arg: Any, reader: NodeReader) -> Tree:
    if isinstance(arg, ConstantArgument):
        return arg.value
    return Ref(ref=reader.resolve(arg.name))


def _tree(value: Any) -> Tree:
    if isinstance(value, dict):
        return Mapping(keys=tuple(str(key) for key in value), items=tuple(_tree(item) for item in value.values()))
    if isinstance(value, list | tuple):
        return Sequence(kind="list" if isinstance(value, list) else "tuple", items=tuple(_tree(item) for item in value))
    return value
