"""The guard of a generated `forward`: plain facts by which a call is told to be the one that kernels are made for."""

from __future__ import annotations

from collections.abc import Sequence

from egg.expert.emit.forward import Part, Unwritable, is_row_major
from egg.expert.emit.signature import Path, Signature
from egg.schema.graph import TensorSpec


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


def _is_like(expression: str, spec: TensorSpec) -> list[str]:
    shape = f"({', '.join(map(str, spec.shape))}{',' if len(spec.shape) == 1 else ''})"
    layout = f"{expression}.is_contiguous()" if is_row_major(spec) else f"{expression}.stride() == {spec.stride}"
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
