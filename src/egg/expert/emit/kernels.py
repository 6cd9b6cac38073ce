"""One kernel as C++: a function for one row (or one tile of columns), and one that runs all rows in parallel."""

from __future__ import annotations

from math import prod

from egg.expert.emit.partials import (
    Partial,
    partial_of,
    print_clear,
    print_combine,
    print_end,
    print_memory,
    print_struct,
)
from egg.expert.emit.point import Hoisted, Place, pointer_type, variable_of
from egg.expert.emit.simplify import simplified
from egg.expert.emit.stages import Frame, StagePrinter, declare_local
from egg.expert.emit.text import Names, Text, identifier
from egg.expert.index import Axis
from egg.expert.ir import Reduce, Scan, loads
from egg.expert.loops import Compute, Kernel, Stage
from egg.schema.plan import ScheduleValue

_CHUNK_POINTS = 64 * 1024


def knob_defaults(kernel: Kernel) -> dict[str, ScheduleValue]:
    """Returns every knob that the kernel's code may refer to, with its value where a schedule says nothing."""
    rows = prod(a.extent for a in kernel.rows)
    points = sum(prod(a.extent for a in s.order) for s in kernel.stages)
    defaults: dict[str, ScheduleValue] = {"threads": 0, "lanes": 32, "stream": False, "split": 0}
    if kernel.columns is not None:
        tile = min(64, kernel.columns.extent)
        defaults["tile"] = tile
        points, rows = points * tile, rows // tile
    grain = max(1, min(rows, _CHUNK_POINTS // max(points, 1)))
    defaults["grain"] = 1 << (grain.bit_length() - 1)
    return defaults


def print_kernel(text: Text, kernel: Kernel, streams: bool = False) -> None:
    """Adds the kernel's functions to the text; the last one has the kernel's name and takes its outside arrays.

    `streams` asks for code that the constant `<kernel>_stream` switches to writing outputs past the caches.
    """
    if kernel.mapping == "inner" and kernel.columns is None:
        InnerKernelPrinter(kernel).print(text)
    else:
        RowKernelPrinter(kernel, streams and not _reads_outputs(kernel)).print(text)


def _reads_outputs(kernel: Kernel) -> bool:
    outputs = {a.name for a in kernel.arrays if a.place == "output"}
    stages = (*kernel.stages, *kernel.tail)
    return any(read.source in outputs and read.at for s in stages for c in s.computes for read in loads(c.body))


def written_arrays(kernel: Kernel) -> frozenset[str]:
    """Returns the names of all arrays that the kernel stores to."""
    stages = (*kernel.stages, *kernel.tail)
    return frozenset(s.array for stage in stages for c in stage.computes for s in c.stores)


class _KernelPrinter:
    """What both forms share."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = simplified(kernel)
        self._id = identifier(kernel.name)
        self._outside = [a for a in kernel.arrays if a.place != "scratch"]
        self._written = written_arrays(kernel)
        self._crossing = self._crossing_partials()
        ends = {s.array for p in self._crossing.values() for s in p.compute.stores}
        tail = {s.array for stage in self._kernel.tail for c in stage.computes for s in c.stores}
        self._shared = {a.name for a in kernel.arrays if a.place == "scratch" and a.name in ends | tail}

    def _crossing_partials(self) -> dict[str, Partial]:
        rows = self._kernel.rows
        found: dict[str, Partial] = {}
        for stage in self._kernel.stages:
            for compute in stage.computes:
                if isinstance(compute.how, Reduce) and set(compute.how.axes) & set(rows):
                    found[compute.name] = partial_of(compute, _kept(compute, (*rows, *stage.order)))
        return found

    def _crosses(self, stage: Stage) -> bool:
        return any(c.name in self._crossing for c in stage.computes)

    def _names(self) -> Names:
        return Names(frozenset(variable_of(a) for a in self._kernel.arrays))

    def _parameters(self) -> list[str]:
        return [f"{pointer_type(a, a.name in self._written)} {variable_of(a)}" for a in self._outside]

    def _ends(self, text: Text, names: Names) -> None:
        """Prints what follows the rows: ends of reductions across them, then the tail."""
        kernel = self._kernel
        places = {a.name: Place(a, variable_of(a)) for a in kernel.arrays if a.place != "scratch"}
        for array in kernel.arrays:
            if array.name in self._shared:
                places[array.name] = Place(array, variable_of(array))
                declare_local(text, places[array.name])
        print_combine(text, tuple(self._crossing.values()))
        for partial in self._crossing.values():
            print_end(text, names.child(), places, {}, partial)
        head, body = Hoisted(names), Text()
        frame = Frame(self._id, (), None, places, {}, head, {})
        for stage in kernel.tail:
            StagePrinter(body, names, frame, stage).print()
        text.line(*head.text.lines, *body.lines)


class RowKernelPrinter(_KernelPrinter):
    """Prints a kernel whose rows run in parallel."""

    def __init__(self, kernel: Kernel, streams: bool) -> None:
        super().__init__(kernel)
        self._streams = f"{self._id}_stream" if streams else ""

    def print(self, text: Text) -> None:
        """Adds the kernel's functions to the text."""
        if self._crossing:
            print_struct(text, self._id, tuple(self._crossing.values()))
        text.comment(self._kernel.doc or f"Kernel {self._kernel.name}.")
        self._row(text)
        text.line()
        text.comment(f"Runs {self._id}_row over all rows.")
        self._driver(text)

    def _row(self, text: Text) -> None:
        kernel, names = self._kernel, self._names()
        tiled = kernel.columns is not None
        places = {
            a.name: Place(a, variable_of(a), "width" if tiled and a.place == "scratch" else None)
            for a in kernel.arrays
            if a.name not in self._shared
        }
        axes = {a: names.fresh(a.name) for a in kernel.rows}
        moving = [a for a in kernel.rows if a.extent > 1 or a == kernel.columns]
        counters = [f"int64_t {axes[a]}{'_first' if a == kernel.columns else ''}" for a in moving]
        partial = [f"{self._id}_partial& partial"] if self._crossing else []
        if tiled:
            text.line("template <int64_t width>")
        with text.block(f"void {self._id}_row({', '.join([*counters, *self._parameters(), *partial])})"):
            for array in kernel.arrays:
                if array.place == "scratch" and array.name in places:
                    declare_local(text, places[array.name])
            head, body = Hoisted(names), Text()
            frame = Frame(self._id, kernel.rows, kernel.columns, places, axes, head, self._crossing, self._streams)
            for stage in kernel.stages:
                StagePrinter(body, names, frame, stage).print()
            text.line(*head.text.lines, *body.lines)

    def _driver(self, text: Text) -> None:
        kernel, names = self._kernel, self._names()
        with text.block(f"void {self._id}({', '.join(self._parameters())})"):
            outer = [a for a in kernel.rows if a != kernel.columns]
            count = str(prod(a.extent for a in outer))
            if kernel.columns is not None:
                extent = kernel.columns.extent
                text.line(f"constexpr int64_t tiles = ({extent} + {self._id}_tile - 1) / {self._id}_tile;")
                count = f"{count} * tiles" if outer else "tiles"
            text.line(f"const int64_t team = egg::team({count}, {self._id}_grain, {self._id}_threads);")
            if self._crossing:
                print_memory(text, self._id)
                print_clear(text, tuple(self._crossing.values()))
            thread = "int64_t thread" if self._crossing else "int64_t"
            head = f"egg::for_rows(team, {count}, {self._id}_grain, [&](int64_t begin, int64_t end, {thread})"
            with text.block(head, "});"):
                with text.block("for (int64_t row = begin; row < end; ++row)"):
                    self._call_row(text, names, outer)
                if self._streams:
                    text.line(f"egg::fence<{self._streams}>();")
            self._ends(text, names)

    def _call_row(self, text: Text, names: Names, outer: list[Axis]) -> None:
        kernel = self._kernel
        axes = {a: names.fresh(a.name) for a in kernel.rows}
        position = "row"
        if kernel.columns is not None:
            position = "(row / tiles)"
            first = f"{axes[kernel.columns]}_first"
            text.line(f"const int64_t {first} = {'row % tiles' if outer else 'row'} * {self._id}_tile;")
        arguments: list[str] = []
        moving = [a for a in outer if a.extent > 1]
        inner = prod(a.extent for a in moving)
        for number, axis in enumerate(moving):
            inner //= axis.extent
            value = f"{position} / {inner}" if inner > 1 else position
            value = f"{value} % {axis.extent}" if number else value
            text.line(f"const int64_t {axes[axis]} = {value};")
            arguments.append(axes[axis])
        pointers = [variable_of(a) for a in self._outside]
        partial = ["partials[thread]"] if self._crossing else []
        if kernel.columns is None:
            text.line(f"kernels::{self._id}_row({', '.join([*arguments, *pointers, *partial])});")
        else:
            first = f"{axes[kernel.columns]}_first"
            self._call_tile(text, first, [*arguments, first, *pointers, *partial], kernel.columns.extent)

    def _call_tile(self, text: Text, first: str, arguments: list[str], extent: int) -> None:
        """Prints the call for a whole tile, and for the columns that are left over."""
        tile, call = f"{self._id}_tile", ", ".join(arguments)
        with text.block(f"if ({first} + {tile} <= {extent})"):
            text.line(f"if constexpr ({tile} <= {extent}) kernels::{self._id}_row<{tile}>({call});")
        with text.block("else"):
            text.line(f"if constexpr ({extent} % {tile} != 0) kernels::{self._id}_row<{extent} % {tile}>({call});")


class InnerKernelPrinter(_KernelPrinter):
    """Prints a kernel whose rows run one after the other, each stage's outermost loop in parallel."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._split = {
            c.name: partial_of(c, _kept(c, stage.order))
            for stage in self._kernel.stages
            if _is_parallel(stage)
            for c in stage.computes
            if isinstance(c.how, Reduce) and stage.order[0] in c.how.axes and c.name not in self._crossing
        }

    def print(self, text: Text) -> None:
        """Adds the kernel's function to the text."""
        kernel, names = self._kernel, self._names()
        partials = {**self._crossing, **self._split}
        if partials:
            print_struct(text, self._id, tuple(partials.values()))
        text.comment(kernel.doc or f"Kernel {kernel.name}.")
        axes = {a: names.fresh(a.name) for a in kernel.rows}
        places = {a.name: Place(a, variable_of(a)) for a in kernel.arrays if a.name not in self._shared}
        with text.block(f"void {self._id}({', '.join(self._parameters())})"):
            for array in kernel.arrays:
                if array.place == "scratch" and array.name in places:
                    declare_local(text, places[array.name])
            text.line(f"const int64_t team = egg::parts({self._id}_split, {self._id}_threads);")
            if partials:
                print_memory(text, self._id)
                print_clear(text, tuple(self._crossing.values()))
            if any(self._crosses(stage) for stage in kernel.stages if not stage.order):
                text.line(f"{self._id}_partial& partial = partials[0];")
            head, body = Hoisted(names), Text()
            frame = Frame(self._id, kernel.rows, None, places, axes, head, partials)
            for stage in kernel.stages:
                self._stage(body, names, frame, stage)
            self._rows(text, axes, [a for a in kernel.rows if a.extent > 1], (*head.text.lines, *body.lines))
            self._ends(text, names)

    def _rows(self, text: Text, axes: dict[Axis, str], rows: list[Axis], lines: tuple[str, ...]) -> None:
        if not rows:
            text.line(*lines)
            return
        name = axes[rows[0]]
        with text.block(f"for (int64_t {name} = 0; {name} < {rows[0].extent}; ++{name})"):
            self._rows(text, axes, rows[1:], lines)

    def _stage(self, text: Text, names: Names, frame: Frame, stage: Stage) -> None:
        partials = [self._split[c.name] for c in stage.computes if c.name in self._split]
        if not stage.order:
            StagePrinter(text, names, frame, stage).print()
            return
        print_clear(text, partials)
        extent = stage.order[0].extent
        unit = 64 if len(stage.order) == 1 else 1
        points = prod(a.extent for a in stage.order)
        parts = "team" if _is_parallel(stage) and points > _CHUNK_POINTS // 2 else "1"
        head = f"egg::for_parts({parts}, {extent}, {unit}, [&](int64_t begin, int64_t end, int64_t thread)"
        shares = any(c.name in frame.partials for c in stage.computes)
        if not shares:
            head = head.replace("int64_t thread", "int64_t")
        with text.block(head, "});"):
            if shares:
                text.line(f"{self._id}_partial& partial = partials[thread];")
            StagePrinter(text, names, frame, stage, ("begin", "end")).print()
        print_combine(text, partials)
        for partial in partials:
            print_end(text, names.child(), frame.places, frame.axes, partial)


def _is_parallel(stage: Stage) -> bool:
    """Whether the outermost loop may be dealt to threads: nothing is scanned along it or keeps a position over it."""
    if not stage.order:
        return False
    for compute in stage.computes:
        match compute.how:
            case Scan(axis=axis) if axis == stage.order[0]:
                return False
            case Reduce(kind="argmax" | "argmin", axes=axes) if stage.order[0] in axes:
                return False
            case _:
                pass
    return True


def _kept(compute: Compute, loops: tuple[Axis, ...]) -> tuple[Axis, ...]:
    assert isinstance(compute.how, Reduce)
    return tuple(a for a in loops if a not in compute.how.axes)
