"""A candidate's file: standalone, for torch, apache-tvm-ffi, ninja and a C++ compiler alone.

Top to bottom: what the file is and why (docstring), the schedule and its space, the kernels as C++, the reference's
own class with its own constructor, the generated forward. It runs the kernels only for the calls they fit,
by a guard on plain facts; any other call goes to the reference's own forward.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from egg.expert.emit.build import COMPILE_FLAGS, LINK_FLAGS
from egg.expert.emit.forward import Part, method_name, tensors, write_method
from egg.expert.emit.guards import guard
from egg.expert.emit.lines import Lines, python_name
from egg.expert.emit.reference_source import ReferenceSource, reference_source
from egg.expert.emit.signature import ANY, Signature
from egg.expert.emit.state import State, write_constructor
from egg.schema.candidate import KnobSpec
from egg.schema.graph import GraphInput
from egg.schema.plan import ScheduleValue
from egg.schema.task import Task

SHORT_CONSTANT = 64
"""Constants with at most this many elements are written as numbers, longer ones as base64."""

STRUCT_CODES = {"float64": "d", "float32": "f", "int64": "q", "int32": "i", "int16": "h", "int8": "b", "uint8": "B",
                "bool": "?"}  # fmt: skip


@dataclass(frozen=True)
class Words:
    """What the docstring of a candidate says beyond what its parts say."""

    steps: tuple[str, ...] = ()
    """Each decision with its principle, in order."""
    not_covered: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tuning:
    """Schedule of all kernels of a candidate, by `<kernel>.<knob>`."""

    values: Mapping[str, ScheduleValue] = field(default_factory=dict[str, ScheduleValue])
    space: Mapping[str, KnobSpec] = field(default_factory=dict[str, KnobSpec])


def base_of(task: Task) -> ReferenceSource | None:
    """Returns the reference's class from the task's text; None where the candidate needs a constructor of its own."""
    return None if task.kind == "live" else reference_source(task.source, task.class_name)


def print_module(task: Task, parts: Sequence[Part], tuning: Tuning, words: Words, state: State | None = None) -> str:
    """Returns the file. `state` gives the parameters where the reference's class has no text.

    Raises Unwritable where a call can't be told apart from others by plain facts.
    """
    base = base_of(task)
    if base is None and state is None:
        raise ValueError(f"{task.name}: no text of the class, and no state to build a constructor from")
    signature = base.signature if base is not None else ANY
    sections = [_docstring(task, parts, words), _imports(parts, state)]
    if any(p.unit for p in parts):
        sections.append(_schedule(tuning))
        sections += [_kernel_source(p) for p in parts if p.unit is not None]
        sections.append(_LOADER.replace("COMPILE", _strings(COMPILE_FLAGS)).replace("LINK", _strings(LINK_FLAGS)))
        sections += [_loader_of(p) for p in parts if p.unit is not None]
    constants = _constants(parts)
    if constants:
        sections.append(constants)
    if base is not None and base.head:
        sections.append(base.head)
    sections.append(_class(task, parts, signature, base, state))
    return "\n\n".join(s.strip("\n") + "\n" for s in sections)


def reference_module(task: Task) -> str | None:
    """Returns the reference itself as a candidate's file, from the task's text; None where there is none to use."""
    base = base_of(task)
    if base is None:
        return None
    head = f'"""{_escaped(task.name)}: the reference itself."""\n\nfrom __future__ import annotations\n'
    forward = f"{base.indent}def forward({base.signature.text}):\n" + (
        f"{base.indent * 2}return self.forward_reference({base.signature.passed_on()})\n"
    )
    return f"{head}\n{base.head}\n\n\n{base.body}\n\n{forward}"


def _docstring(task: Task, parts: Sequence[Part], words: Words) -> str:
    text = [f"{task.name}, with kernels for {', '.join(_call_of(p) for p in parts)}.", ""]
    for part in parts:
        prefix = f"{part.workload.name}: " if len(parts) > 1 else ""
        for step in part.layout.steps:
            doc = getattr(step, "doc", "")
            if doc:
                text += [*_wrapped(f"{prefix}{step.name}: {' '.join(doc.split())}", "- "), ""]
    if words.steps:
        text += ["Decisions:", *(line for step in words.steps for line in _wrapped(step, "- ")), ""]
    covered = words.not_covered or ("none",)
    text += ["Operators that stay library calls:", *(line for n in covered for line in _wrapped(n, "- ")), ""]
    other = "forward_reference runs" if base_of(task) is not None else "an error is raised"
    text += _wrapped(
        f"Calls with other shapes, dtypes, strides, devices or arguments, in another mode, under autocast, or with "
        f"gradients: {other}.",
        "",
    )
    return '"""' + _escaped("\n".join(text)) + '\n"""\n\nfrom __future__ import annotations\n'


def _call_of(part: Part) -> str:
    tensors = [f"{i.name}: {i.spec.dtype}{list(i.spec.shape)}" for i in part.program.inputs if i.kind == "input"]
    return f"({', '.join(tensors)})"


def _wrapped(words: str, bullet: str) -> list[str]:
    return wrap(words, 110, initial_indent=bullet, subsequent_indent=" " * len(bullet)) or [""]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', "'''")


def _imports(parts: Sequence[Part], state: State | None) -> str:
    encoded = "base64." in _constants(parts) or any(slot.data for slot in (state.slots if state else ()))
    lines = ["import base64"] if encoded else []
    if any(p.unit for p in parts):
        lines += ["import hashlib", "import os", "from functools import cache", "from pathlib import Path"]
    elif _constants(parts):
        lines.append("from functools import cache")
    return "\n".join((*lines, "", "import torch", "from torch import nn"))


def _schedule(tuning: Tuning) -> str:
    lines = Lines()
    for name, values in (
        ("SCHEDULE", tuning.values),
        ("SCHEDULE_SPACE", {k: list(s.choices) for k, s in tuning.space.items()}),
    ):
        if not values:
            lines.line(f"{name} = {{}}")
            continue
        with lines.indented(f"{name} = {{"):
            for knob, value in values.items():
                lines.line(f"{knob!r}: {value!r},")
        lines.line("}")
    return lines.render()


def _kernel_source(part: Part) -> str:
    if part.unit is None:
        return ""
    return f'{_constant_name(part)} = r"""\n{part.unit.source}"""\n'


def _constant_name(part: Part) -> str:
    name = python_name(part.workload.name)
    return "KERNEL_SOURCE" if name == "default" else f"KERNEL_SOURCE_{name.upper()}"


def _loader_name(part: Part) -> str:
    name = python_name(part.workload.name)
    return "kernels" if name == "default" else f"kernels_{name}"


def _loader_of(part: Part) -> str:
    functions = part.unit.functions if part.unit is not None else ()
    names = ", ".join(f"module.{f.name}" for f in functions)
    lines = Lines()
    lines.line("@cache")
    with lines.indented(f"def {_loader_name(part)}():"):
        lines.line(f'"""Returns the native functions of workload {part.workload.name!r}, built on the first call."""')
        lines.line(f'module = _load("{_loader_name(part)}", {_constant_name(part)})', f"return ({names},)")
    return lines.render()


def _constants(parts: Sequence[Part]) -> str:
    """Returns the function that makes the tensor constants; constants of one name are equal in all workloads."""
    found: dict[str, GraphInput] = {}
    for part in parts:
        found |= {i.name: i for i in part.program.inputs if i.kind == "constant" and i.value is not None}
    if not found:
        return ""
    lines = Lines()
    lines.line("@cache")
    with lines.indented("def constants():"):
        lines.line('"""Returns the tensors that the reference builds anew at every call."""')
        with lines.indented("return {"):
            for name, entry in found.items():
                lines.line(f'"{name}": {_tensor(entry)},')
        lines.line("}")
    return lines.render()


def _tensor(entry: GraphInput) -> str:
    values, spec = entry.value or (), entry.spec
    shape = f"({', '.join(map(str, spec.shape))}{',' if len(spec.shape) == 1 else ''})"
    code = STRUCT_CODES.get(spec.dtype)
    if len(values) <= SHORT_CONSTANT or code is None:
        numbers = ", ".join(f'float("{v}")' if repr(v) in ("inf", "-inf", "nan") else repr(v) for v in values)
        return f"torch.tensor([{numbers}], dtype=torch.{spec.dtype}).reshape({shape})"
    raw = base64.b64encode(struct.pack(f"<{len(values)}{code}", *values)).decode()
    return f'torch.frombuffer(bytearray(base64.b64decode("{raw}")), dtype=torch.{spec.dtype}).reshape({shape})'


def _class(
    task: Task, parts: Sequence[Part], signature: Signature, base: ReferenceSource | None, state: State | None
) -> str:
    methods = Lines(1)
    if base is None and state is not None:
        write_constructor(methods, state)
        methods.line("")
    if any(p.unit for p in parts):
        with methods.indented("def prepare(self):"):
            methods.line('"""Builds the kernels ahead of the first call."""')
            methods.line(*(f"{_loader_name(p)}()" for p in parts if p.unit is not None))
        methods.line("")
    _forward(methods, task, parts, signature, base)
    for part in parts:
        methods.line("")
        write_method(methods, part, _loader_name(part))
    methods.line("")
    with methods.indented("def _needs_gradients(self, *tensors):"):
        methods.line('"""Returns whether autograd would record this call."""')
        methods.line("return any(t.requires_grad for t in (*tensors, *self.parameters()))")
    text = methods.render()
    if base is None:
        return f'class ModelNew(nn.Module):\n    """Stands for {task.class_name}."""\n\n{text}'
    own = text if base.indent == "    " else "".join(_reindented(line, base.indent) for line in text.splitlines(True))
    return f"{base.body.rstrip()}\n\n{own}"


def _reindented(line: str, indent: str) -> str:
    stripped = line.lstrip(" ")
    return indent * ((len(line) - len(stripped)) // 4) + stripped if stripped.strip() else line


def _forward(
    text: Lines, task: Task, parts: Sequence[Part], signature: Signature, base: ReferenceSource | None
) -> None:
    with text.indented(f"def forward({signature.text}):"):
        for part in parts:
            first, *others = guard(part, signature, task.training)
            leaves = ", ".join(signature.expression(i.path) for i in tensors(part))
            with text.indented("if ("):
                text.line(first, *(f"and {c}" for c in others))
                text.line('and not torch.is_autocast_enabled("cpu")')
                text.line(f"and not (torch.is_grad_enabled() and self._needs_gradients({leaves}))")
            text.line("):")
            text.line(f"    return self.{method_name(part.workload)}({leaves})")
        if base is not None:
            text.line(f"return self.forward_reference({signature.passed_on()})")
        else:
            text.line(f'raise ValueError("{_escaped(task.class_name)}: made for {_calls(parts)} without gradients, '
                      f'{"training" if task.training else "evaluation"} mode")')  # fmt: skip


def _calls(parts: Sequence[Part]) -> str:
    return " or ".join(_call_of(p) for p in parts)


def _strings(values: Sequence[str]) -> str:
    return ", ".join(f'"{v}"' for v in values)


_LOADER = '''\
def _load(name, source):
    """Returns the native functions of a C++ text with the schedule's numbers in it, built once for each content."""
    import tvm_ffi.cpp

    numbers = {knob.replace(".", "_"): value for knob, value in SCHEDULE.items()}
    lines = [f"constexpr int64_t {n} = {int(v)};\\n" for n, v in numbers.items() if n in source]
    text = "".join(("#include <cstdint>\\n", *lines, source))
    flags = dict(extra_cflags=[COMPILE], extra_ldflags=[LINK])
    digest = hashlib.sha256(repr((text, flags)).encode()).hexdigest()[:16]
    root = Path(os.environ.get("TVM_FFI_CACHE_DIR") or Path.home() / ".cache" / "tvm-ffi")
    folder = root / f"egg_{name}_{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.cpp"
    if not path.exists():
        path.write_text(text, encoding="utf-8")
    return tvm_ffi.cpp.load(f"{name}_{digest}", cpp_files=str(path), build_directory=str(folder), **flags)
'''
