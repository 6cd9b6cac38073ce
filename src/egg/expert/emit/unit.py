"""One C++ text for all kernels of a layout: functions, kernels, and one entry for each run of consecutive kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from egg.expert.emit.dtypes import stored_type
from egg.expert.emit.functions import functions_used
from egg.expert.emit.kernels import knob_defaults, print_kernel, written_arrays
from egg.expert.emit.point import pointer_type, variable_of
from egg.expert.emit.templates import print_template, template_knobs
from egg.expert.emit.text import Text, identifier
from egg.expert.ir import Library
from egg.expert.loops import Array, Kernel, Layout, Native, Schedule
from egg.expert.outputs import bytes_of, is_fresh
from egg.schema.graph import node_refs
from egg.schema.plan import ScheduleValue

_ALIGNMENT_BYTES = 64
_DL_CODES = {"float": (2, None), "bfloat": (4, None), "int": (0, None), "uint": (1, None), "bool": (6, 8)}


@dataclass(frozen=True)
class CppFunction:
    """An entry of the compiled module: it runs some consecutive kernels in one native call."""

    name: str
    arguments: tuple[Array, ...]
    """In order: what it reads, then what it writes. Dtype, shape and strides are those it checks."""
    outputs: tuple[str, ...]
    """Names of the arguments that it writes; the caller allocates them."""
    kernels: tuple[str, ...]
    """Names of the kernels that it runs, in order."""


@dataclass(frozen=True)
class CppUnit:
    """A C++ text and what it exports."""

    source: str
    """Refers to the constants of `defines` without defining them."""
    functions: tuple[CppFunction, ...]
    defines: dict[str, ScheduleValue]
    """Schedule constants by their C++ name, `<kernel>_<knob>`, with the values in use."""

    @property
    def complete_source(self) -> str:
        """The text with the constants at its head, ready to compile."""
        return definitions(self.defines) + self.source


def definitions(values: Mapping[str, ScheduleValue]) -> str:
    """Returns schedule values as C++ constants, one a line."""
    return "#include <cstdint>\n" + "".join(f"constexpr int64_t {n} = {int(v)};\n" for n, v in values.items())


def print_cpp(layout: Layout | Sequence[Native], schedules: Mapping[str, Schedule] | None = None) -> CppUnit:
    """Returns the kernels and templates of a layout as C++.

    Consecutive ones become one function; library calls between them end it. A buffer that only one such function
    uses is memory of the calling thread, every other array is an argument.
    """
    if not isinstance(layout, Layout):
        layout = Layout(tuple(layout))
    schedules = schedules or {}
    runs = _runs(layout)
    defines: dict[str, ScheduleValue] = {}
    body = Text()
    for kernel in (k for run in runs for k in run):
        _kernel(body, kernel, schedules.get(kernel.name, Schedule()), defines)
    entries = Text()
    functions: list[CppFunction] = []
    for number, run in enumerate(runs):
        functions.append(_entry(entries, f"run{number}", run, _private(layout, run), defines))
    code = body.render()
    parts = (
        _HEAD,
        _namespaced("egg", functions_used(code + entries.render())),
        f"namespace {{\n\n{_namespaced('kernels', code)}\n{entries.render()}}}  // namespace\n",
        _bindings(functions),
    )
    return CppUnit("\n".join(parts), tuple(functions), defines)


def _runs(layout: Layout) -> list[list[Native]]:
    runs: list[list[Native]] = [[]]
    for step in layout.steps:
        if isinstance(step, Native):
            runs[-1].append(step)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _private(layout: Layout, run: Sequence[Native]) -> frozenset[str]:
    """Returns the buffers that no step outside the run touches and that need memory of their own."""
    over = {a.name for step in run for a in step.arrays if a.over}
    names = {b.name for b in layout.buffers} - over
    for step in layout.steps:
        if isinstance(step, Library):
            names -= {*node_refs(step.node), *(v.name for v in step.node.outputs)}
        elif step not in run:
            names -= {a.name for a in step.arrays}
    return frozenset(names)


def _kernel(text: Text, kernel: Native, schedule: Schedule, defines: dict[str, ScheduleValue]) -> None:
    """Prints a kernel; the knobs of its schedule are defined ahead of the text, others that it uses here."""
    prefix = identifier(kernel.name)
    for knob, value in schedule.values.items():
        if isinstance(value, str):
            raise ValueError(f"schedule of {kernel.name}: {knob}={value!r}; C++ knobs are numbers or booleans")
        defines[f"{prefix}_{knob}"] = value
    printed = Text()
    if isinstance(kernel, Kernel):
        print_kernel(printed, kernel, "stream" in schedule.values)
        defaults = knob_defaults(kernel)
    else:
        print_template(printed, kernel)
        defaults = template_knobs(kernel)
    code = printed.render()
    for knob, value in defaults.items():
        name = f"{prefix}_{knob}"
        if knob not in schedule.values and re.search(rf"\b{name}\b", code):
            text.line(f"constexpr int64_t {name} = {int(value)};")
    text.line("", *printed.lines, "")


def _entry(
    text: Text, name: str, run: Sequence[Native], private: frozenset[str], defines: Mapping[str, ScheduleValue]
) -> CppFunction:
    """Prints the function that runs the kernels one after the other; returns what it is called with."""
    written = frozenset(n for k in run for n in _written(k))
    arrays: dict[str, Array] = {}
    for kernel in run:
        for array in kernel.arrays:
            if array.place != "scratch":
                arrays.setdefault(array.name, array)
    inputs = [a for n, a in arrays.items() if n not in written]
    outputs = [a for n, a in arrays.items() if n in written and n not in private]
    buffers = [a for n, a in arrays.items() if n in written and n in private]
    parameters = [f"{pointer_type(a, a.name in written)} {variable_of(a)}" for a in (*inputs, *outputs)]
    with text.block(f"void {name}({', '.join(parameters)})"):
        _buffers(text, buffers)
        for kernel in run:
            _huge_pages(text, kernel, private, defines)
            pointers = [variable_of(a) for a in kernel.arrays if a.place != "scratch"]
            text.line(f"kernels::{identifier(kernel.name)}({', '.join(pointers)});")
    text.line()
    return CppFunction(name, (*inputs, *outputs), tuple(a.name for a in outputs), tuple(k.name for k in run))


def _huge_pages(text: Text, step: Native, private: frozenset[str], defines: Mapping[str, ScheduleValue]) -> None:
    """Prints the wish for huge pages under the large outputs of a kernel that has the knob."""
    knob = f"{identifier(step.name)}_huge_pages"
    if knob in defines:
        for array in step.arrays:
            if array.place == "output" and array.name not in private and not array.over and is_fresh(bytes_of(array)):
                text.line(f"egg::huge_pages<{knob}>({variable_of(array)}, {bytes_of(array)});")


def _written(step: Native) -> frozenset[str]:
    if isinstance(step, Kernel):
        return written_arrays(step)
    return frozenset(a.name for a in step.arrays if a.place == "output")


def _buffers(text: Text, buffers: Sequence[Array]) -> None:
    if not buffers:
        return
    offsets: list[int] = []
    total = 0
    for array in buffers:
        offsets.append(total)
        total += -(-bytes_of(array) // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
    text.line("static thread_local egg::Memory memory;")
    text.line(f"char* const buffers = static_cast<char*>(memory.at_least({total}));")
    for array, offset in zip(buffers, offsets, strict=True):
        ctype = stored_type(array.dtype)
        text.line(f"{ctype}* const {variable_of(array)} = reinterpret_cast<{ctype}*>(buffers + {offset});")


def _namespaced(name: str, code: str) -> str:
    return f"namespace {name} {{\n\n{code.strip()}\n\n}}  // namespace {name}\n" if code.strip() else ""


def _bindings(functions: Sequence[CppFunction]) -> str:
    text = Text()
    text.line(_CHECK.strip(), "")
    for function in functions:
        _binding(text, function)
    return text.render()


def _binding(text: Text, function: CppFunction) -> None:
    """Prints the exported function: it checks its tensors and hands their pointers on."""
    exported = f'extern "C" __attribute__((visibility("default"))) int __tvm_ffi_{function.name}'
    count = len(function.arguments)
    with text.block(f"{exported}(void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny*)"):
        text.line(f'if (count != {count}) return failed("{function.name} takes {count} tensors");')
        for number, array in enumerate(function.arguments):
            code, bits = _dl_type(array.dtype)
            shape = ", ".join(map(str, array.shape)) or "0"
            stride = ", ".join(map(str, array.stride)) or "0"
            kind = f"{array.dtype} of shape {list(array.shape)} and strides {list(array.stride)}"
            text.line(
                f"static const int64_t shape{number}[] = {{{shape}}}, stride{number}[] = {{{stride}}};",
                f"const DLTensor* const t{number} = tensor(arguments[{number}]);",
                f"if (!fits(t{number}, {code}, {bits}, {len(array.shape)}, shape{number}, stride{number}))",
                f'  return failed("{function.name}: {array.name} must be a CPU tensor, {kind}");',
            )
        pointers = ", ".join(
            f"static_cast<{stored_type(a.dtype)}*>(data(t{n}))" for n, a in enumerate(function.arguments)
        )
        text.line(f"{function.name}({pointers});", "return 0;")
    text.line()


def _dl_type(dtype: str) -> tuple[int, int]:
    kind = dtype.rstrip("0123456789")
    code, bits = _DL_CODES[kind]
    return code, bits or int(dtype[len(kind) :])


_HEAD = """\
#include <cstdint>
#include <cstdlib>

#include <omp.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#include <tvm/ffi/c_api.h>

#define INLINE __attribute__((always_inline))
"""

_CHECK = """
namespace {

int failed(const char* why) {
  TVMFFIErrorSetRaisedFromCStr("ValueError", why);
  return -1;
}

const DLTensor* tensor(const TVMFFIAny& argument) {
  if (argument.type_index == kTVMFFIDLTensorPtr) return static_cast<const DLTensor*>(argument.v_ptr);
  if (argument.type_index == kTVMFFITensor) return TVMFFITensorGetDLTensorPtr(argument.v_obj);
  return nullptr;
}

// Whether the tensor has the layout that the code was printed for.
bool fits(const DLTensor* t, int code, int bits, int rank, const int64_t* shape, const int64_t* stride) {
  if (t == nullptr || t->device.device_type != kDLCPU || t->ndim != rank) return false;
  if (t->dtype.code != code || t->dtype.bits != bits || t->dtype.lanes != 1) return false;
  int64_t dense = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (t->shape[i] != shape[i]) return false;
    if (shape[i] > 1 && (t->strides ? t->strides[i] : dense) != stride[i]) return false;
    dense *= shape[i];
  }
  return true;
}

void* data(const DLTensor* t) { return static_cast<char*>(t->data) + t->byte_offset; }

}  // namespace
"""
