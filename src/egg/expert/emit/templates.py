"""Templates as C++: a function that takes the slices one after the other, in parallel where there are several."""

from __future__ import annotations

from math import prod

from egg.expert.emit.dtypes import literal, storable, stored_type
from egg.expert.emit.point import pointer_type, variable_of
from egg.expert.emit.text import Names, Text, identifier
from egg.expert.loops import Array, Template
from egg.schema.plan import ScheduleValue

_KEYS = {
    "float32": ("uint32_t", "egg::order_float32(value)"),
    "float64": ("uint64_t", "egg::order_float64(value)"),
    "float16": ("uint16_t", "egg::order_half(value, 0x7C00)"),
    "bfloat16": ("uint16_t", "egg::order_half(value, 0x7F80)"),
    "int64": ("uint64_t", "egg::order_integer(value, 64)"),
    "int32": ("uint32_t", "egg::order_integer(value, 32)"),
    "int16": ("uint16_t", "egg::order_integer(value, 16)"),
    "int8": ("uint8_t", "egg::order_integer(value, 8)"),
    "uint8": ("uint8_t", "value"),
}
"""Type of a key, and the key of an element."""


def template_knobs(template: Template) -> dict[str, ScheduleValue]:
    """Returns every knob that the code may refer to, with its value where a schedule says nothing."""
    return {"threads": 0, "grain": 1, "digit_bits": 8}


def print_template(text: Text, template: Template) -> None:
    """Adds the function of a template's name, which takes its arrays."""
    name = identifier(template.name)
    names = Names(frozenset(variable_of(a) for a in template.arrays))
    axes = [names.fresh(f"i{number}") for number in range(len(template.loops))]
    parameters = [f"{pointer_type(a, a.place == 'output')} {variable_of(a)}" for a in template.arrays]
    rows = prod(template.loops)
    text.comment(template.doc or f"Template {template.name}.")
    with text.block(f"void {name}({', '.join(parameters)})"):
        text.line(f"const int64_t team = egg::team({rows}, {name}_grain, {name}_threads);")
        head = f"egg::for_rows(team, {rows}, {name}_grain, [&](int64_t begin, int64_t end, int64_t)"
        with text.block(head, "});"):
            scratch = names.fresh("scratch")
            if template.function == "sort":
                _print_scratch(text, template, scratch)
            with text.block("for (int64_t row = begin; row < end; ++row)"):
                inner = rows
                for axis, extent in zip(axes, template.loops, strict=True):
                    inner //= extent
                    text.line(f"const int64_t {axis} = row / {inner} % {extent};")
                slices = [_slice(a, template.dim, axes) for a in template.arrays]
                call = _sort_call if template.function == "sort" else _scatter_call
                text.line(call(template, slices, scratch))


def _print_scratch(text: Text, template: Template, scratch: str) -> None:
    source = template.arrays[0]
    key, bits = _KEYS[source.dtype][0], f"{identifier(template.name)}_digit_bits"
    bytes_ = f"egg::sort_bytes<{key}, {bits}>({source.shape[template.dim]})"
    text.line("static thread_local egg::Memory memory;", f"void* const {scratch} = memory.at_least({bytes_});")


def _sort_call(template: Template, slices: list[str], scratch: str) -> str:
    source, *results = template.arrays
    key, order = _KEYS[source.dtype]
    ctype = stored_type(source.dtype)
    size, kept = source.shape[template.dim], results[-1].shape[template.dim]
    values = slices[1] if len(results) == 2 else f"static_cast<{ctype}*>(nullptr), 0"
    numbers = f"{identifier(template.name)}_digit_bits, {str(template.descending).lower()}, {size}, {kept}"
    return (
        f"egg::sort_slice<{key}, {numbers}>([]({ctype} value) {{ return {order}; }}, {scratch}, "
        f"{slices[0]}, {values}, {slices[-1]});"
    )


def _scatter_call(template: Template, slices: list[str], scratch: str) -> str:
    base, places, *_, result = template.arrays
    if template.value is None:
        pointer, step = slices[2].rsplit(", ", 1)
        value = f"[&](int64_t i) {{ return ({pointer})[i * {step}]; }}"
    else:
        value = f"[](int64_t) {{ return {storable(literal(template.value, base.dtype), base.dtype)}; }}"
    numbers = f"{result.shape[template.dim]}, {places.shape[template.dim]}"
    return f"egg::scatter_slice<{numbers}>({slices[-1]}, {slices[0]}, {slices[1]}, {value});"


def _slice(array: Array, dim: int, axes: list[str]) -> str:
    """Returns where a slice starts and the step between its elements, as two arguments."""
    outer = (*array.stride[:dim], *array.stride[dim + 1 :])
    extents = (*array.shape[:dim], *array.shape[dim + 1 :])
    terms = [f"{a} * {s}" for a, s, e in zip(axes, outer, extents, strict=True) if e > 1]
    return f"{' + '.join((variable_of(array), *terms))}, {array.stride[dim]}"
