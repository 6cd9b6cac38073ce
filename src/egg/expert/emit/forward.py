"""The generated `forward` of a candidate: a guard on plain facts, then kernels and library calls in order."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass

from egg.expert.emit.lines import Lines, python_name
from egg.expert.emit.signature import Path, Signature
from egg.expert.emit.torch_calls import DENSE_RESULTS, call
from egg.expert.emit.unit import CppFunction, CppUnit
from egg.expert.ir import Library, Program
from egg.expert.loops import Layout, Native
from egg.schema import graph as g
from egg.schema.graph import GraphInput, TensorSpec, Tree, node_refs
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


def guard(part: Part, signature: Signature, training: bool) -> tuple[str, ...]:
    """Returns the conditions under which a call is the one that a workload's kernels are made for."""
    used = {i.path: i for i in part.program.inputs if i.kind == "input"}
    conditions: list[str] = []
    trees = {signature.base(leaf.path)[0]: [] for leaf in part.workload.inputs}
    for leaf in part.workload.inputs:
        base, rest = signature.base(leaf.path)
        trees[base].append(rest)
    conditions += _packs(signature, [leaf.path for leaf in part.workload.inputs])
    for base, paths in trees.items():
        conditions += _structure(base, paths)
    for leaf in part.workload.inputs:
        expression = signature.expression(leaf.path)
        if leaf.kind == "tensor" and leaf.spec is not None:
            entry = used.get(leaf.path)
            conditions += _is_like(expression, entry.spec if entry is not None else leaf.spec)
        else:
            conditions.append(_equals(expression, leaf.kind, leaf.text))
    for name in signature.not_given([leaf.path for leaf in part.workload.inputs]):
        if name not in signature.defaults:
            raise Unwritable(f"parameter {name} of forward is neither given by the workload nor has a default")
        conditions.append(_is_default(name, signature.defaults[name]))
    return (f"self.training is {training}", *conditions)


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
        dense = "" if step.node.op in DENSE_RESULTS or not _feeds_kernel(part, outputs[0].name) else ".contiguous()"
        text.line(f"{names(outputs[0].name)} = {written}{dense}")
        return
    text.line(f"{', '.join(names(v.name) if v.name in needed else '_' for v in outputs)} = {written}")
    for value in outputs:
        if _feeds_kernel(part, value.name):
            text.line(f"{names(value.name)} = {names(value.name)}.contiguous()")


def _run(text: Lines, function: CppFunction, names: Names, direct: dict[str, str]) -> None:
    for array in function.arguments:
        if array.name in function.outputs and array.name not in direct:
            shape = f"({', '.join(map(str, array.shape))}{',' if len(array.shape) == 1 else ''})"
            text.line(f"{names(array.name)} = torch.empty({shape}, dtype=torch.{array.dtype})")
    text.line(f"{function.name}({', '.join(names(a.name) for a in function.arguments)})")


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
        if maker is None or mutation.value in returned or mutation.value in found or not _dense(spec):
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
        if isinstance(step, Native):
            reached = reached or step.name in function.kernels
            if reached:
                read |= {a.name for a in step.arrays if a.place == "input"}
        elif reached:
            read |= set(node_refs(step.node))
    return read


def _read_later(part: Part, value: str) -> bool:
    return any(m.target == value for m in part.program.mutations)


def _feeds_kernel(part: Part, name: str) -> bool:
    return any(isinstance(s, Native) and any(a.name == name for a in s.arrays) for s in part.layout.steps)


def _used(part: Part) -> set[str]:
    """Returns every value that the method names."""
    used = set(g.tree_refs(part.program.returns))
    used |= {n for m in part.program.mutations for n in (m.target, m.value)}
    for step in part.layout.steps:
        if isinstance(step, Native):
            used |= {a.name for a in step.arrays if a.place != "scratch"}
        else:
            used |= set(node_refs(step.node))
    return used


def _dense(spec: TensorSpec) -> bool:
    step = 1
    for extent, stride in zip(reversed(spec.shape), reversed(spec.stride or ()), strict=False):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


def _is_like(expression: str, spec: TensorSpec) -> list[str]:
    shape = f"({', '.join(map(str, spec.shape))}{',' if len(spec.shape) == 1 else ''})"
    layout = f"{expression}.is_contiguous()" if _dense(spec) else f"{expression}.stride() == {spec.stride}"
    return [
        f"type({expression}) is torch.Tensor and {expression}.is_cpu and {expression}.shape == {shape}",
        f"{expression}.dtype is torch.{spec.dtype} and {layout}",
    ]


def _equals(expression: str, kind: str, text: str | None) -> str:
    if text is None or kind not in ("int", "float", "bool", "str", "NoneType"):
        raise Unwritable(f"argument {expression} of type {kind} can't be compared in a guard")
    if kind in ("bool", "NoneType"):
        return f"{expression} is {text}"
    if kind == "float" and text in ("inf", "-inf", "nan"):
        raise Unwritable(f"argument {expression} is {text}")
    return f"type({expression}) is {kind} and {expression} == {text}"


def _is_default(name: str, default: str) -> str:
    if default in ("None", "True", "False"):
        return f"{name} is {default}"
    if default.replace(".", "", 1).replace("-", "", 1).replace("e", "", 1).isdigit() or default[:1] in "'\"":
        return f"{name} == {default}"
    raise Unwritable(f"the default {default} of parameter {name} can't be compared in a guard")


def _structure(base: str, paths: Sequence[Path]) -> list[str]:
    """Returns conditions that a nested argument has exactly the containers that the paths go through."""
    if any(not p for p in paths):
        return []
    steps = list(dict.fromkeys(p[0] for p in paths))
    if all(isinstance(s, int) for s in steps):
        found = [f"isinstance({base}, (list, tuple)) and len({base}) == {len(steps)}"]
    else:
        keys = "{" + ", ".join(repr(s) for s in steps) + "}"
        found = [f"isinstance({base}, dict) and {base}.keys() == {keys}"]
    for step in steps:
        found += _structure(f"{base}[{step!r}]", [p[1:] for p in paths if p[0] == step])
    return found


def _packs(signature: Signature, paths: Sequence[Path]) -> list[str]:
    """Returns conditions on the lengths of `*args` and `**kwargs`; they go first, as the others index into them."""
    found: list[str] = []
    if signature.variable:
        fixed = len(signature.positional)
        count = len({p[0] for p in paths if isinstance(p[0], int) and p[0] >= fixed})
        found.append(f"len({signature.variable}) == {count}")
    if signature.keywords:
        known = {*signature.positional, *signature.keyword_only}
        names = sorted({p[0] for p in paths if isinstance(p[0], str) and p[0] not in known})
        found.append(f"{signature.keywords}.keys() == {{{', '.join(map(repr, names))}}}" if names
                     else f"not {signature.keywords}")  # fmt: skip
    return found
