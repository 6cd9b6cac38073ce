"""The generated method of a candidate that runs one workload: kernels and library calls in order."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass

from egg.expert.emit.lines import Lines, python_name
from egg.expert.emit.torch_calls import DENSE_RESULTS, call
from egg.expert.emit.unit import CppFunction, CppUnit
from egg.expert.ir import Library, Program
from egg.expert.loops import Layout, Native, read_names
from egg.schema import graph as g
from egg.schema.graph import GraphInput, Node, TensorSpec, Tree, node_refs
from egg.schema.task import Workload

RESERVED = frozenset((*keyword.kwlist, "self", "torch", "nn", "kernels"))


class Unwritable(Exception):
    """This task can't be written as a candidate of this kind; the message says why."""


@dataclass(frozen=True)
class Part:
    """All that one workload contributes to the file."""

    workload: Workload
    program: Program
    layout: Layout
    unit: CppUnit | None
    """None where all steps are library calls."""


def method_name(workload: Workload) -> str:
    """Returns the name of the method that runs one workload."""
    return f"_forward_{python_name(workload.name)}"


def tensors(part: Part) -> list[GraphInput]:
    """Returns the tensor arguments that a workload's method takes, in order."""
    used = _used(part)
    return [i for i in part.program.inputs if i.kind == "input" and i.name in used]


def write_method(text: Lines, part: Part, kernels: str) -> None:
    """Prints the method that runs one workload; `kernels` names the function that loads its native functions."""
    names = Names(part)
    given = ", ".join(names(i.name) for i in tensors(part))
    with text.indented(f"def {method_name(part.workload)}(self{', ' + given if given else ''}):"):
        _loads(text, part, names, kernels)
        functions = list(part.unit.functions) if part.unit else []
        direct = _written_in_place(part)
        running: list[str] = []
        for step in part.layout.steps:
            if isinstance(step, Library):
                _library(text, step, names, part)
                running = []
            elif step.name not in running:
                function = next(f for f in functions if step.name in f.kernels)
                _run(text, function, names, direct)
                running = list(function.kernels)
        for mutation in part.program.mutations:
            if mutation.value not in direct:
                text.line(f"{names(mutation.target)}.copy_({names(mutation.value)})")
        text.line(f"return {tree(part.program.returns, names)}")


class Names:
    """Python variables for the values of a program."""

    def __init__(self, part: Part) -> None:
        self._taken: dict[str, str] = {}
        self._direct = _written_in_place(part)
        functions = {f.name for f in part.unit.functions} if part.unit else set[str]()
        self._used = {*RESERVED, *functions}

    def __call__(self, name: str) -> str:
        """Returns the variable of a value; the buffer itself for one that is written straight into it."""
        name = self._direct.get(name, name)
        if name not in self._taken:
            variable = python_name(name)
            while variable in self._used:
                variable += "_"
            self._used.add(variable)
            self._taken[name] = variable
        return self._taken[name]


def tree(returns: Tree, names: Names) -> str:
    """Returns the returned structure as Python."""
    match returns:
        case g.Ref(ref=name):
            return names(name)
        case g.Sequence(kind=kind, items=items):
            inner = ", ".join(tree(t, names) for t in items)
            return f"[{inner}]" if kind == "list" else f"({inner}{',' if len(items) == 1 else ''})"
        case g.Mapping(keys=keys, items=items):
            return "{" + ", ".join(f"{k!r}: {tree(t, names)}" for k, t in zip(keys, items, strict=True)) + "}"
        case _:
            return repr(returns)


def attribute(path: str, kind: str) -> str:
    """Returns Python that reads a parameter or buffer by its qualified name, past the slow path of nn.Module."""
    *modules, last = path.split(".")
    owner = "self" + "".join(f'._modules["{m}"]' for m in modules)
    if kind == "parameter":
        return f'{owner}._parameters["{last}"]'
    return f"{owner}.{last}" if last.isidentifier() else f'getattr({owner}, "{last}")'


def _loads(text: Lines, part: Part, names: Names, kernels: str) -> None:
    if part.unit is not None and part.unit.functions:
        functions = [f.name for f in part.unit.functions]
        text.line(f"({', '.join(functions)}{',' if len(functions) == 1 else ''}) = {kernels}()")
    used = _used(part)
    for entry in part.program.inputs:
        if entry.name not in used or entry.kind == "input":
            continue
        if entry.kind == "constant":
            text.line(f'{names(entry.name)} = constants()["{entry.name}"]')
        else:
            text.line(f"{names(entry.name)} = {attribute(str(entry.path[0]), entry.kind)}")


def _library(text: Lines, step: Library, names: Names, part: Part) -> None:
    outputs = step.node.outputs
    needed = _used(part)
    written = call(step.node, names)
    if len(outputs) == 1:
        dense = "" if _is_dense(part, step.node) or not _feeds_kernel(part, outputs[0].name) else ".contiguous()"
        text.line(f"{names(outputs[0].name)} = {written}{dense}")
        return
    text.line(f"{', '.join(names(v.name) if v.name in needed else '_' for v in outputs)} = {written}")
    for value in outputs:
        if _feeds_kernel(part, value.name):
            text.line(f"{names(value.name)} = {names(value.name)}.contiguous()")


def _is_dense(part: Part, node: Node) -> bool:
    """Returns whether the result of a call is row-major for sure: so are those of products and convolutions, if their
    arguments are. A convolution hands the strides of its input on."""
    strided = {i.name for i in part.program.inputs if not is_row_major(i.spec)}
    for step in part.layout.steps:
        if isinstance(step, Library) and (step.node.op not in DENSE_RESULTS or strided & {*node_refs(step.node)}):
            strided |= {v.name for v in step.node.outputs if not _feeds_kernel(part, v.name)}
    return node.op in DENSE_RESULTS and not strided & {*node_refs(node)}


def _run(text: Lines, function: CppFunction, names: Names, direct: dict[str, str]) -> None:
    for array in function.arguments:
        if array.over:
            text.line(f"{names(array.name)} = {names(array.over)}")
        elif array.name in function.outputs and array.name not in direct:
            # empty_strided takes half the time of empty, whose arguments are harder to tell apart
            layout = f"{_numbers(array.shape)}, {_numbers(array.stride)}"
            text.line(f"{names(array.name)} = torch.empty_strided({layout}, dtype=torch.{array.dtype})")
    text.line(f"{function.name}({', '.join(names(a.name) for a in function.arguments)})")


def _numbers(values: Sequence[int]) -> str:
    return f"({', '.join(map(str, values))}{',' if len(values) == 1 else ''})"


def _written_in_place(part: Part) -> dict[str, str]:
    """Returns the values that a kernel may write straight into the buffer that ends up holding them.

    So it is when the value is not returned too, and neither that native call nor a later step reads the old buffer.
    """
    if part.unit is None:
        return {}
    found: dict[str, str] = {}
    returned = set(g.tree_refs(part.program.returns))
    specs = {i.name: i.spec for i in part.program.inputs}
    for mutation in part.program.mutations:
        maker = next((f for f in part.unit.functions if mutation.value in f.outputs), None)
        spec = specs[mutation.target]
        if maker is None or mutation.value in returned or mutation.value in found or not is_row_major(spec):
            continue
        if mutation.target in returned or any(m.value == mutation.target for m in part.program.mutations):
            continue
        if mutation.target not in _read_from(part, maker) and not _read_later(part, mutation.value):
            found[mutation.value] = mutation.target
    return found


def _read_from(part: Part, function: CppFunction) -> set[str]:
    """Returns the values that a native call or any step after it reads."""
    read: set[str] = set()
    reached = False
    for step in part.layout.steps:
        reached = reached or (isinstance(step, Native) and step.name in function.kernels)
        if reached:
            read |= read_names(step)
    return read


def _read_later(part: Part, value: str) -> bool:
    return any(m.target == value for m in part.program.mutations)


def _feeds_kernel(part: Part, name: str) -> bool:
    return any(isinstance(s, Native) and any(name in (a.name, a.over) for a in s.arrays) for s in part.layout.steps)


def _used(part: Part) -> set[str]:
    """Returns every value that the method names."""
    used = set(g.tree_refs(part.program.returns))
    used |= {n for m in part.program.mutations for n in (m.target, m.value)}
    for step in part.layout.steps:
        if isinstance(step, Native):
            used |= {a.name for a in step.arrays if a.place != "scratch"} | {a.over for a in step.arrays if a.over}
        else:
            used |= set(node_refs(step.node))
    return used


def is_row_major(spec: TensorSpec) -> bool:
    """Returns whether a tensor lies densely in row-major order."""
    step = 1
    for extent, stride in zip(reversed(spec.shape), reversed(spec.stride or ()), strict=False):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True
