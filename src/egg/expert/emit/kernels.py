"""One kernel as C++: a function for one row (or one tile of columns), and one that runs all rows in parallel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from egg.expert.emit.dtypes import HALF, converted, held_type
from egg.expert.emit.point import Hoisted, Place, Point, Scope, dtype_of, pointer_type, variable_of
from egg.expert.emit.reductions import accumulator_dtype, combination
from egg.expert.emit.simplify import simplified
from egg.expert.emit.stages import Frame, StagePrinter, contiguous, declare_local
from egg.expert.emit.text import Names, Text, identifier
from egg.expert.index import Axis, axis_index
from egg.expert.ir import Reduce
from egg.expert.loops import Array, Compute, Kernel
from egg.schema.plan import ScheduleValue

_CHUNK_POINTS = 32 * 1024


def knob_defaults(kernel: Kernel) -> dict[str, ScheduleValue]:
    """Returns every knob that the kernel's code refers to, with the value it has where a schedule says nothing."""
    rows = prod(a.extent for a in kernel.rows)
    points = sum(prod(a.extent for a in s.order) for s in kernel.stages)
    defaults: dict[str, ScheduleValue] = {"threads": 0, "lanes": 32, "stream": False}
    if kernel.columns is not None:
        tile = min(64, kernel.columns.extent)
        defaults["tile"] = tile
        points, rows = points * tile, rows // tile
    grain = max(1, min(rows, _CHUNK_POINTS // max(points, 1)))
    defaults["grain"] = 1 << (grain.bit_length() - 1)
    return defaults


class KernelPrinter:
    """Prints one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = simplified(kernel)
        self._id = identifier(kernel.name)
        self._crossing = [
            c
            for s in self._kernel.stages
            for c in s.computes
            if isinstance(c.how, Reduce) and set(c.how.axes) & set(self._kernel.rows)
        ]
        ends = {s.array for c in self._crossing for s in c.stores}
        tail = {s.array for stage in self._kernel.tail for c in stage.computes for s in c.stores}
        self._shared = {a.name for a in kernel.arrays if a.place == "scratch" and a.name in ends | tail}
        self._outside = [a for a in kernel.arrays if a.place != "scratch"]
        self._written = written_arrays(kernel)
        self._partials = {c.name: self._partial(c) for c in self._crossing}

    def print(self, text: Text) -> None:
        """Adds the kernel's functions to the text."""
        if self._partials:
            self._partial_struct(text)
        text.comment(self._kernel.doc or f"Kernel {self._kernel.name}.")
        self._row(text)
        text.line()
        text.comment(f"Runs {self._id}_row over all rows.")
        self._driver(text)

    # one row

    def _names(self) -> Names:
        taken = {variable_of(a) for a in self._kernel.arrays} | {"width", "partial"}
        return Names(frozenset(taken))

    def _places(self) -> dict[str, Place]:
        tiled = self._kernel.columns is not None
        return {
            a.name: Place(a, variable_of(a), "width" if tiled and a.place == "scratch" else None)
            for a in self._kernel.arrays
            if a.name not in self._shared
        }

    def _row(self, text: Text) -> None:
        kernel, names, places = self._kernel, self._names(), self._places()
        axes = {a: names.fresh(a.name) for a in kernel.rows}
        counters = [
            f"int64_t {axes[a]}{'_first' if a == kernel.columns else ''}"
            for a in kernel.rows
            if a.extent > 1 or a == kernel.columns
        ]
        partial = [f"{self._id}_partial& partial"] if self._partials else []
        if kernel.columns is not None:
            text.line("template <int64_t width>")
        with text.block(f"void {self._id}_row({', '.join([*counters, *self._parameters(), *partial])})"):
            for array in kernel.arrays:
                if array.place == "scratch" and array.name in places:
                    declare_local(text, places[array.name])
            head, body = Hoisted(names), Text()
            frame = Frame(self._id, kernel.rows, kernel.columns, places, axes, head, self._partials)
            for stage in kernel.stages:
                StagePrinter(body, names, frame, stage).print()
            text.line(*head.text.lines, *body.lines)

    def _parameters(self) -> list[str]:
        return [f"{pointer_type(a, a.name in self._written)} {variable_of(a)}" for a in self._outside]

    # all rows

    def _driver(self, text: Text) -> None:
        kernel = self._kernel
        names = self._names()
        with text.block(f"void {self._id}({', '.join(self._parameters())})"):
            outer = [a for a in kernel.rows if a != kernel.columns]
            count = str(prod(a.extent for a in outer))
            if kernel.columns is not None:
                extent = kernel.columns.extent
                text.line(f"constexpr int64_t tiles = ({extent} + {self._id}_tile - 1) / {self._id}_tile;")
                count = f"{count} * tiles" if outer else "tiles"
            text.line(f"const int64_t team = egg::team({count}, {self._id}_grain, {self._id}_threads);")
            if self._partials:
                text.line(
                    "static thread_local egg::Memory memory;",
                    f"auto* const partials = static_cast<{self._id}_partial*>"
                    f"(memory.at_least(team * sizeof({self._id}_partial)));",
                    "for (int64_t thread = 0; thread < team; ++thread) partials[thread].clear();",
                )
            thread = "int64_t thread" if self._partials else "int64_t"
            head = f"egg::for_rows(team, {count}, {self._id}_grain, [&](int64_t begin, int64_t end, {thread})"
            with text.block(head, "});"), text.block("for (int64_t row = begin; row < end; ++row)"):
                self._call_row(text, names, outer)
            self._ends(text, names)

    def _call_row(self, text: Text, names: Names, outer: list[Axis]) -> None:
        kernel = self._kernel
        axes = {a: names.fresh(a.name) for a in kernel.rows}
        position = "row"
        if kernel.columns is not None:
            position = "row / tiles" if outer else ""
            first = f"{axes[kernel.columns]}_first"
            text.line(f"const int64_t {first} = {'row % tiles' if outer else 'row'} * {self._id}_tile;")
        arguments = []
        moving = [a for a in outer if a.extent > 1]
        inner = prod(a.extent for a in moving)
        for number, axis in enumerate(moving):
            inner //= axis.extent
            value = f"({position}) / {inner}" if inner > 1 else f"({position})"
            value = f"{value} % {axis.extent}" if number else value
            text.line(f"const int64_t {axes[axis]} = {value.replace('(row)', 'row')};")
            arguments.append(axes[axis])
        partial = ["partials[thread]"] if self._partials else []
        pointers = [variable_of(a) for a in self._outside]
        if kernel.columns is None:
            text.line(f"kernels::{self._id}_row({', '.join([*arguments, *pointers, *partial])});")
            return
        extent, tile = kernel.columns.extent, f"{self._id}_tile"
        arguments.append(f"{axes[kernel.columns]}_first")
        call = ", ".join([*arguments, *pointers, *partial])
        with text.block(f"if ({axes[kernel.columns]}_first + {tile} <= {extent})"):
            text.line(f"if constexpr ({tile} <= {extent}) kernels::{self._id}_row<{tile}>({call});")
        with text.block("else"):
            text.line(f"if constexpr ({extent} % {tile} != 0) kernels::{self._id}_row<{extent} % {tile}>({call});")

    # reductions that cross rows

    def _partial(self, compute: Compute) -> Place:
        how = compute.how
        assert isinstance(how, Reduce)
        kept = self._kept(compute)
        operand = dtype_of(compute.body)
        dtype = accumulator_dtype(how.kind, "float32" if operand in HALF else operand, True)
        shape = tuple(a.extent for a in kept)
        array = Array(compute.name, dtype, shape, contiguous(shape), "scratch")
        return Place(array, f"partial.{identifier(compute.name)}")

    def _kept(self, compute: Compute) -> tuple[Axis, ...]:
        assert isinstance(compute.how, Reduce)
        stage = next(s for s in self._kernel.stages if compute in s.computes)
        return tuple(a for a in (*self._kernel.rows, *stage.order) if a not in compute.how.axes)

    def _partial_struct(self, text: Text) -> None:
        text.comment(f"What one thread of {self._id} has reduced over its rows.")
        with text.block(f"struct alignas(64) {self._id}_partial", "};"):
            for place in self._partials.values():
                size = f"[{place.array.numel}]" if place.array.shape else ""
                text.line(f"{held_type(place.array.dtype)} {_field(place)}{size};")
            with text.block("void clear()"):
                for compute in self._crossing:
                    self._each(text, compute, lambda to, how, dtype: f"{to} = {combination(how.kind, dtype).start};")
            with text.block(f"void add(const {self._id}_partial& other)"):
                for compute in self._crossing:
                    self._each(
                        text,
                        compute,
                        lambda to, how, dtype: combination(how.kind, dtype).step.format(to=to, value=f"other.{to}"),
                    )
        text.line()

    def _each(self, text: Text, compute: Compute, statement: object) -> None:
        place = self._partials[compute.name]
        field = _field(place)
        assert callable(statement)
        if not place.array.shape:
            text.line(statement(field, compute.how, place.array.dtype))
            return
        body = statement(f"{field}[i]", compute.how, place.array.dtype)
        text.line(f"for (int64_t i = 0; i < {place.array.numel}; ++i) {body}")

    def _ends(self, text: Text, names: Names) -> None:
        kernel = self._kernel
        places = {a.name: Place(a, variable_of(a)) for a in kernel.arrays if a.place != "scratch"}
        if self._partials:
            text.line("for (int64_t thread = 1; thread < team; ++thread) partials[0].add(partials[thread]);")
        for array in kernel.arrays:
            if array.name in self._shared:
                places[array.name] = Place(array, variable_of(array))
                declare_local(text, places[array.name])
        for compute in self._crossing:
            self._end(text, names.child(), places, compute)
        head, body = Hoisted(names), Text()
        frame = Frame(self._id, (), None, places, {}, head, {})
        for stage in kernel.tail:
            StagePrinter(body, names, frame, stage).print()
        text.line(*head.text.lines, *body.lines)

    def _end(self, text: Text, names: Names, places: Mapping[str, Place], compute: Compute) -> None:
        """Stores the combined result of a reduction that crosses rows."""
        kept = [a for a in self._kept(compute) if a.extent > 1]
        axes = {a: names.fresh(a.name) for a in kept}
        partial = self._partials[compute.name]
        total = replace(partial, variable=f"partials[0].{_field(partial)}")
        point = Point(Scope(places, axes, None), names)
        value = point.element(total, tuple(axis_index(a) for a in self._kept(compute)))
        for store in compute.stores:
            point.store(store, converted(value, total.array.dtype, compute.dtype), compute.dtype)
        lines = [*point.before.lines, *point.inside.lines]
        _nested(text, [f"for (int64_t {axes[a]} = 0; {axes[a]} < {a.extent}; ++{axes[a]})" for a in kept], lines)


def written_arrays(kernel: Kernel) -> frozenset[str]:
    """Returns the names of all arrays that the kernel stores to."""
    stages = (*kernel.stages, *kernel.tail)
    return frozenset(s.array for stage in stages for c in stage.computes for s in c.stores)


def _field(place: Place) -> str:
    return place.variable.removeprefix("partial.")


def _nested(text: Text, heads: list[str], lines: list[str]) -> None:
    if not heads:
        text.line(*lines)
        return
    with text.block(heads[0]):
        _nested(text, heads[1:], lines)
