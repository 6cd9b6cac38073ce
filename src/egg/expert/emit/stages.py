"""The loops of one stage: outer loops, the vectorised loop, accumulators of reductions and scans around them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from egg.expert.emit.accumulators import Accumulator, is_top, position_dtype
from egg.expert.emit.block_scans import BlockLoop, print_block_scans, scans_in_blocks
from egg.expert.emit.dtypes import HALF, converted, held_type
from egg.expert.emit.indices import contiguous
from egg.expert.emit.partials import Partial
from egg.expert.emit.point import Hoisted, Place, Point, Scope, dtype_of
from egg.expert.emit.reductions import FLOAT_STEPS, ONLINE_BLOCK, accumulator_dtype, combination, extreme_start
from egg.expert.emit.text import Names, Text, identifier
from egg.expert.emit.windows import window_start
from egg.expert.index import Axis, Index, axis_index, flatten
from egg.expert.ir import Reduce, Scan
from egg.expert.loops import Array, Compute, Stage
from egg.expert.work import flops

_STACK_BYTES = 16 * 1024
_READ_FLOPS = 2
"""Work that may be done twice rather than kept in a block: a conversion, a scale."""
_NAMED = re.compile(r"const (bool inside|int64_t \w+_index|\w+\* (__restrict )?\w+_at)")
"""Conditions, fetched indices and pointers that a stage declares ahead of its loops."""


@dataclass(frozen=True)
class Frame:
    """What surrounds a stage within a kernel."""

    knobs: str
    """Prefix of the schedule constants: `k0`."""
    rows: tuple[Axis, ...]
    """Row axes, the columns included; a reduction over one of them crosses rows."""
    columns: Axis | None
    places: Mapping[str, Place]
    axes: Mapping[Axis, str]
    head: Hoisted
    partials: Mapping[str, Partial]
    """Where a reduction that crosses rows accumulates, by the name of its compute."""
    streams: str = ""
    """Name of the constant that says whether outputs are written past the caches; empty where they never are."""


class StagePrinter:
    """Prints one stage into a text."""

    def __init__(
        self, text: Text, names: Names, frame: Frame, stage: Stage, span: tuple[str, str] | None = None
    ) -> None:
        self._text = text
        self._span = span
        self._names = names.child()
        self._frame = frame
        self._stage = stage
        self._places = dict(frame.places)
        self._axes = dict(frame.axes)
        self._loops = [*stage.order, *([frame.columns] if frame.columns else [])]
        for axis in stage.order:
            self._axes[axis] = self._names.fresh(axis.name)
        self._crossing = [c for c in stage.computes if _reduced(c) and not _inner_axes(c, self._loops)]
        self._accumulators = [
            self._accumulator(c) for c in stage.computes if _reduced(c) and _inner_axes(c, self._loops)
        ]
        self._online = [a for a in self._accumulators if a.online and a.tail < len(self._loops)]
        self._tops = {a.compute.name: o for o in self._online for a in self._accumulators if is_top(a, o)}
        alone = len(self._online) == 1 and len(stage.computes) == 1 + len(self._tops)
        self._rereads = alone and flops(self._online[0].compute.body) <= _READ_FLOPS
        self._block = ("", "")
        self._scans: dict[str, str] = {}
        self._window = None if self._frame.partials else window_start(stage, self._loops, self._accumulators)

    def print(self) -> None:
        """Adds the stage to the text; as a block where it names what another stage may name too."""
        outside, self._text = self._text, Text()
        if self._loops:
            self._level(0)
        else:
            self._scalars()
        lines = self._text.lines
        if any(_NAMED.match(line) for line in lines):
            with outside.block(""):
                outside.line(*lines)
        else:
            outside.line(*lines)

    # loops

    def _scalars(self) -> None:
        point = self._point(None, "")
        self._body(point)
        self._flush(point)

    def _level(self, depth: int) -> None:
        axis = self._loops[depth]
        if depth == self._window:
            self._print_window(self._loops[depth:-1], self._loops[-1])
            return
        self._open(depth)
        scans = [c for c in self._stage.computes if isinstance(c.how, Scan) and c.how.axis == axis]
        for compute in scans:
            self._open_scan(compute, depth)
        if depth == len(self._loops) - 1:
            self._lanes(axis)
        else:
            reverse = any(isinstance(c.how, Scan) and c.how.reverse for c in scans)
            with self._text.block(self._for(axis, reverse)):
                self._level(depth + 1)
        self._close(depth)

    def _for(self, axis: Axis, reverse: bool = False) -> str:
        name = self._axes[axis]
        begin, end = self._range(axis)
        if reverse:
            return f"for (int64_t {name} = {end} - 1; {name} >= {begin}; --{name})"
        return f"for (int64_t {name} = {begin}; {name} < {end}; ++{name})"

    def _lanes(self, axis: Axis) -> None:
        if scans_in_blocks(self._stage, axis) and self._frame.columns is None:
            loop = BlockLoop(self._axes[axis], *self._range(axis), self._lane_count())
            runs = {name: self._places[run].variable for name, run in self._scans.items()}
            print_block_scans(self._text, self._names, self._stage, loop, lambda slot: self._point(axis, slot), runs)
            return
        scans = [c.how for c in self._stage.computes if isinstance(c.how, Scan) and c.how.axis == axis]
        totals = [a for a in self._accumulators if a.wide and a.tail < len(self._loops)]
        slot = self._names.fresh("lane")
        point = self._point(axis, slot)
        name = self._axes[axis]
        if self._online:
            self._block = self._names.fresh(f"{name}_block"), self._names.fresh(f"{name}_end")
        self._body(point)
        self._text.line(*point.before.lines)
        if scans:
            with self._text.block(self._for(axis, scans[0].reverse)):
                self._flush(point, before=False)
            return
        begin, end = self._range(axis)
        lanes = self._lane_count()
        if self._online:
            self._online_loop(point, totals, begin, end, name, slot)
        elif totals and axis.extent > FLOAT_STEPS * 8:
            chunk = self._names.fresh(f"{name}_block")
            step = f"{FLOAT_STEPS} * {lanes}"
            head = f"for (int64_t {chunk} = {begin}; {chunk} < {end}; {chunk} += {step})"
            with self._text.block(head):
                self._vector_loop(point, totals, chunk, f"egg::lesser({chunk} + {step}, {end})", name, slot)
        else:
            self._vector_loop(point, totals, begin, end, name, slot)

    def _online_loop(
        self, point: Point, totals: Sequence[Accumulator], begin: str, end: str, name: str, slot: str
    ) -> None:
        """Prints the loop in blocks: each is read twice, for its maximum and for its sum, the second time from caches.

        What is more than a read is evaluated once and kept for both.
        """
        first, last = self._block
        count = self._lane_count()
        if not self._rereads:
            for acc in self._online:
                ctype = held_type(acc.operand)
                self._text.line(f"alignas(64) {ctype} {acc.name}_block[{ONLINE_BLOCK} * {count}];")
        step = f"{ONLINE_BLOCK} * {count}"
        with self._text.block(f"for (int64_t {first} = {begin}; {first} < {end}; {first} += {step})"):
            self._text.line(f"const int64_t {last} = egg::lesser({first} + {step}, {end});")
            if not self._rereads:
                self._vector_loop(point, totals, first, last, name, slot)
            for acc in self._online:
                lines = point.inside.lines if self._rereads else (f"return {acc.name}_block[{name} - {first}];",)
                pair = f"{acc.name}_top, {acc.name}_total, {first}, {last}"
                head = f"egg::add_exponentials<{count}>({pair}, [&](int64_t {name}) INLINE"
                with self._text.block(head, "});"):
                    self._text.line(*lines)

    def _vector_loop(
        self, point: Point, totals: Sequence[Accumulator], begin: str, end: str, name: str, slot: str
    ) -> None:
        for acc in totals:
            self._declare_lanes(acc)
        for block, ctype, _ in point.blocks.values():
            self._text.line(f"alignas(64) {ctype} {block}[{self._lane_count()}];")
        function = "for_blocks" if point.blocks else "for_lanes"
        head = f"egg::{function}<{self._lane_count()}>({begin}, {end}, [&](int64_t {name}, int64_t {slot}) INLINE"
        if slot not in point.inside.render():
            head = head.replace(f"int64_t {slot}", "int64_t")
        flush = [
            f"egg::flush<{self._frame.streams}>({pointer} + {name}, {block}, count);"
            for block, _, pointer in point.blocks.values()
        ]
        end_text = f"}}, [&](int64_t {name}, int64_t count) INLINE {{ {' '.join(flush)} }});" if flush else "});"
        with self._text.block(head, end_text):
            self._flush(point, before=False)
        for acc in totals:
            self._text.line(f"{acc.name}_total += {combination(acc.how.kind, acc.dtype).lanes}({acc.name}_lanes);")

    def _print_window(self, window: Sequence[Axis], axis: Axis) -> None:
        """Prints the vectorised loop with the whole window inside."""
        slot = self._names.fresh("lane")
        ends, inside = self._point(axis, slot), self._point(axis, slot)
        for acc in self._accumulators:
            name = f"{acc.name}_all"
            self._places[name] = Place(Array(name, acc.dtype, (), (), "scratch"), name)
            ends.inside.line(f"{held_type(acc.dtype)} {name} = {combination(acc.how.kind, acc.dtype).start};")
        self._body(inside)
        self._unrolled(ends.inside, window, inside)
        for acc in self._accumulators:
            self._finish_kept(ends, acc)
        self._text.line(*ends.before.lines)
        begin, end = self._range(axis)
        self._vector_loop(ends, (), begin, end, self._axes[axis], slot)

    def _unrolled(self, text: Text, axes: Sequence[Axis], point: Point) -> None:
        if not axes:
            text.line(*point.before.lines, *point.inside.lines)
            return
        head = f"egg::unrolled<{axes[0].extent}>([&](int64_t {self._axes[axes[0]]}) INLINE"
        with text.block(head, "});"):
            self._unrolled(text, axes[1:], point)

    def _range(self, axis: Axis) -> tuple[str, str]:
        if axis == self._frame.columns:
            first = f"{self._axes[axis]}_first"
            return first, f"{first} + width"
        if self._span is not None and axis == self._loops[0]:
            return self._span
        return "0", str(axis.extent)

    def _lane_count(self) -> str:
        return "width" if self._frame.columns else f"{self._frame.knobs}_lanes"

    # the body of the innermost loop

    def _point(self, lane: Axis | None, slot: str) -> Point:
        in_order = lane is not None and self._runs_in_order(lane)
        return Point(
            Scope(self._places, self._axes, lane, slot, frozenset(self._frame.rows), self._frame.head),
            self._names.child(),
            "" if in_order else self._frame.streams,
        )

    def _body(self, point: Point) -> None:
        point.count(self._stage.computes)
        for compute in self._stage.computes:
            match compute.how:
                case None:
                    point.define(compute)
                case Reduce():
                    self._accumulate(point, compute)
                case Scan():
                    self._scan(point, compute, compute.how)

    def _flush(self, point: Point, before: bool = True) -> None:
        self._text.line(*(point.before.lines if before else ()), *point.inside.lines)

    def _accumulate(self, point: Point, compute: Compute) -> None:
        if compute.name in self._tops:
            return
        value = point.value(compute)
        if compute in self._crossing:
            self._combine_partial(point, compute, value)
            return
        acc = next(a for a in self._accumulators if a.compute is compute)
        vector = acc.tail < len(self._loops)
        if acc.online:
            if vector and self._rereads:
                point.inside.line(f"return {value};")
            elif vector:
                at = f"{self._axes[self._loops[-1]]} - {self._block[0]}"
                point.inside.line(f"{acc.name}_block[{at}] = {value};")
            else:
                tops, totals = self._element(point, acc, "_tops"), self._element(point, acc, "_totals")
                point.inside.line(f"egg::add_exponential({tops}, {totals}, {value});")
            return
        if acc.arg:
            position = point.index(_position(acc.how))
            best, at = (
                (f"{acc.name}_lanes[{point.scope.slot}]", f"{acc.name}_at[{point.scope.slot}]")
                if vector
                else (self._element(point, acc), self._element(point, acc, "_at"))
            )
            larger = "larger" if acc.how.kind == "argmax" else "smaller"
            point.inside.line(f"egg::keep_{larger}({best}, {at}, {value}, {position});")
            return
        target = f"{acc.name}_lanes[{point.scope.slot}]" if vector else self._element(point, acc)
        dtype = accumulator_dtype(acc.how.kind, acc.operand, False) if vector else acc.dtype
        value = converted(value, acc.operand, dtype)
        point.inside.line(combination(acc.how.kind, dtype).step.format(to=target, value=value))

    def _element(self, point: Point, acc: Accumulator, suffix: str = "") -> str:
        place = self._places[f"{acc.name}{suffix or '_all'}"]
        return point.element(place, tuple(axis_index(a) for a in acc.kept if a != self._frame.columns))

    # accumulators

    def _accumulator(self, compute: Compute) -> Accumulator:
        how = compute.how
        assert isinstance(how, Reduce)
        loops = self._loops
        reduced = [axis in how.axes for axis in loops]
        first = reduced.index(True)
        tail = len(loops)
        while tail > first and reduced[tail - 1] and not self._runs_in_order(loops[-1]):
            tail -= 1
        kept = tuple(a for a in loops[first:] if a not in how.axes)
        steps = prod(a.extent for a in loops if a in how.axes)
        per_lane = steps / 8 if tail < len(loops) else steps
        operand = dtype_of(compute.body)
        wide = how.kind == "sum" and operand in (*HALF, "float32") and per_lane > FLOAT_STEPS
        doubles = wide and tail == len(loops)
        if how.kind == "sumexp":
            doubles = tail < len(loops) or steps > FLOAT_STEPS
        dtype = accumulator_dtype(how.kind, operand, doubles)
        return Accumulator(compute, how, first, tail, kept, wide, dtype, identifier(compute.name))

    def _runs_in_order(self, axis: Axis) -> bool:
        """Returns whether something is scanned along a loop: then it has no lanes."""
        return any(isinstance(c.how, Scan) and c.how.axis == axis for c in self._stage.computes)

    def _open(self, depth: int) -> None:
        for acc in self._accumulators:
            if acc.first == depth and acc.first < acc.tail:
                self._open_array(acc)
            if acc.tail == depth and acc.tail < len(self._loops) and acc.compute.name not in self._tops:
                if acc.online:
                    start = extreme_start(acc.how.kind, acc.operand)
                    self._text.line(f"{held_type(acc.operand)} {acc.name}_top = {start};")
                    self._text.line(f"double {acc.name}_total = 0;")
                elif acc.wide:
                    self._text.line(f"double {acc.name}_total = 0;")
                else:
                    self._declare_lanes(acc)

    def _open_array(self, acc: Accumulator) -> None:
        shape = tuple(a.extent for a in acc.kept if a != self._frame.columns)
        if acc.online:
            self._declare_array(f"{acc.name}_tops", acc.operand, shape, extreme_start(acc.how.kind, acc.operand))
            self._declare_array(f"{acc.name}_totals", acc.dtype, shape, f"{held_type(acc.dtype)}(0)")
            return
        start = extreme_start(acc.how.kind, acc.operand) if acc.arg else combination(acc.how.kind, acc.dtype).start
        self._declare_array(f"{acc.name}_all", acc.operand if acc.arg else acc.dtype, shape, start)
        if acc.arg:
            dtype = position_dtype(acc.how)
            self._declare_array(f"{acc.name}_at", dtype, shape, f"{dtype}_t(0)")

    def _declare_array(self, name: str, dtype: str, shape: tuple[int, ...], start: str) -> None:
        """Declares an array for each kept point; a big one lives in memory that the thread keeps."""
        width = "width" if self._frame.columns else None
        array = Array(name, dtype, shape, contiguous(shape), "scratch")
        self._places[name] = Place(array, name, width)
        declare_local(self._text, self._places[name])
        count = f"{prod(shape)}{' * width' if width else ''}"
        if not shape and width is None:
            self._text.line(f"{name} = {start};")
        else:
            self._text.line(f"egg::fill({name}, {count}, {start});")

    def _declare_lanes(self, acc: Accumulator) -> None:
        count = self._lane_count()
        dtype = acc.operand if acc.arg else accumulator_dtype(acc.how.kind, acc.operand, False)
        start = extreme_start(acc.how.kind, dtype) if acc.arg else combination(acc.how.kind, dtype).start
        ctype = held_type(dtype)
        zero = acc.how.kind == "sum"
        self._text.line(f"{ctype} {acc.name}_lanes[{count}]{' = {}' if zero else ''};")
        if not zero:
            self._text.line(f"egg::fill({acc.name}_lanes, {count}, {start});")
        if acc.arg:
            self._text.line(f"{position_dtype(acc.how)}_t {acc.name}_at[{count}] = {{}};")

    def _close(self, depth: int) -> None:
        for acc in self._accumulators:
            if acc.tail == depth and acc.tail < len(self._loops):
                self._close_lanes(acc)
            if acc.first == depth and acc.first < acc.tail:
                self._close_array(acc)

    def _close_lanes(self, acc: Accumulator) -> None:
        """Combines the lanes; the value goes to its stores, or into the array of the kept loops."""
        point = self._point(None, "0")
        if acc.online:
            top, total = f"{acc.name}_top", f"{acc.name}_total"
            if acc.first < acc.tail:
                tops, totals = self._element(point, acc, "_tops"), self._element(point, acc, "_totals")
                point.inside.line(f"egg::join_exponentials({tops}, {totals}, {top}, {total});")
            else:
                self._finish_online(point, acc, top, total)
            self._flush(point)
            return
        lane_dtype = acc.operand if acc.arg else accumulator_dtype(acc.how.kind, acc.operand, False)
        if acc.arg:
            end = f"egg::lanes_{'largest' if acc.how.kind == 'argmax' else 'smallest'}"
            value, dtype = f"{end}({acc.name}_lanes, {acc.name}_at)", "int64"
        elif acc.compute.name in self._tops:
            value, dtype = f"{self._tops[acc.compute.name].name}_top", lane_dtype
        elif acc.wide:
            value, dtype = f"{acc.name}_total", "float64"
        else:
            value, dtype = f"{combination(acc.how.kind, lane_dtype).lanes}({acc.name}_lanes)", lane_dtype
        if acc.first < acc.tail:
            if acc.arg:
                raise ValueError(f"{acc.compute.name}: {acc.how.kind} over loops around a kept one is not printed")
            step = combination(acc.how.kind, acc.dtype).step
            value = converted(value, dtype, acc.dtype)
            point.inside.line(step.format(to=self._element(point, acc), value=value))
        else:
            self._finish(point, acc.compute, value, dtype)
        self._flush(point)

    def _close_array(self, acc: Accumulator) -> None:
        lane = acc.kept[-1] if acc.kept else None
        slot = self._names.fresh("lane") if lane else "0"
        point = self._point(lane, slot)
        if acc.online:
            tops, totals = self._element(point, acc, "_tops"), self._element(point, acc, "_totals")
            self._finish_online(point, acc, tops, totals)
        else:
            self._finish_kept(point, acc)
        self._nest(acc.kept, point, slot)

    def _finish_kept(self, point: Point, acc: Accumulator) -> None:
        end = self._element(point, acc, "_at" if acc.arg else "")
        self._finish(point, acc.compute, end, position_dtype(acc.how) if acc.arg else acc.dtype)

    def _nest(self, axes: Sequence[Axis], point: Point, slot: str) -> None:
        if not axes:
            self._flush(point)
            return
        if len(axes) > 1:
            with self._text.block(self._for(axes[0])):
                self._nest(axes[1:], point, slot)
            return
        self._text.line(*point.before.lines)
        begin, end = self._range(axes[0])
        self._vector_loop(point, (), begin, end, self._axes[axes[0]], slot)

    def _finish(self, point: Point, compute: Compute, value: str, dtype: str) -> None:
        """Sends the end of a reduction to its stores, or into the partial result of the thread."""
        if compute.name in self._frame.partials:
            self._combine_partial(point, compute, value, dtype)
            return
        target = compute.dtype
        for store in compute.stores:
            point.store(store, converted(value, dtype, target), target)

    def _finish_online(self, point: Point, acc: Accumulator, top: str, total: str) -> None:
        """Sends a maximum and the sum relative to it on as one value, or into the partial result of the thread."""
        partial = self._frame.partials.get(acc.compute.name)
        if partial is None:
            self._finish(point, acc.compute, f"egg::exponentials({top}, {total})", acc.dtype)
        else:
            point.inside.line(f"egg::join_exponentials({', '.join(_pair(point, partial))}, {top}, {total});")

    def _combine_partial(self, point: Point, compute: Compute, value: str, dtype: str | None = None) -> None:
        partial = self._frame.partials[compute.name]
        place = partial.place
        if partial.top is not None:
            point.inside.line(f"egg::add_exponential({', '.join(_pair(point, partial))}, {value});")
            return
        target = point.element(place, tuple(axis_index(a) for a in partial.kept))
        value = converted(value, dtype or dtype_of(compute.body), place.array.dtype)
        point.inside.line(combination(partial.how.kind, place.array.dtype).step.format(to=target, value=value))

    # scans

    def _open_scan(self, compute: Compute, depth: int) -> None:
        how = compute.how
        assert isinstance(how, Scan)
        kept = tuple(a.extent for a in self._loops[depth + 1 :] if a != self._frame.columns)
        name = self._names.fresh(f"{compute.name}_run")
        dtype = accumulator_dtype(how.kind, dtype_of(compute.body), True)
        self._scans[compute.name] = name
        self._declare_array(name, dtype, kept, combination(how.kind, dtype).start)

    def _scan(self, point: Point, compute: Compute, how: Scan) -> None:
        value = point.value(compute)
        place = self._places[self._scans[compute.name]]
        depth = self._loops.index(how.axis)
        kept = tuple(axis_index(a) for a in self._loops[depth + 1 :] if a != self._frame.columns)
        target = point.element(place, kept)
        value = converted(value, dtype_of(compute.body), place.array.dtype)
        point.inside.line(combination(how.kind, place.array.dtype).step.format(to=target, value=value))
        name = point.fresh(compute)
        end = converted(target, place.array.dtype, compute.dtype)
        point.inside.line(f"const {held_type(compute.dtype)} {name} = {end};")
        point.name_value(compute, name)
        for store in compute.stores:
            point.store(store, name, compute.dtype)


def declare_local(text: Text, place: Place) -> None:
    """Declares scratch of a row: a variable, an array on the stack, or, where big, memory that the thread keeps."""
    ctype = held_type(place.array.dtype)
    if place.scalar:
        text.line(f"{ctype} {place.variable};")
        return
    count = f"{place.array.numel}{' * width' if place.width else ''}"
    size = place.array.numel * 8 * (64 if place.width else 1)
    if size <= _STACK_BYTES:
        text.line(f"alignas(64) {ctype} {place.variable}[{count}];")
        return
    owner = f"{place.variable}_memory"
    text.line(f"static thread_local egg::Memory {owner};")
    text.line(
        f"{ctype}* __restrict {place.variable} = static_cast<{ctype}*>({owner}.at_least({count} * sizeof({ctype})));"
    )


def _pair(point: Point, partial: Partial) -> tuple[str, str]:
    """Returns the maximum and the sum relative to it in the partial result of a thread."""
    assert partial.top is not None
    at = tuple(axis_index(a) for a in partial.kept)
    return point.element(partial.top, at), point.element(partial.place, at)


def _reduced(compute: Compute) -> bool:
    return isinstance(compute.how, Reduce)


def _inner_axes(compute: Compute, loops: Sequence[Axis]) -> tuple[Axis, ...]:
    assert isinstance(compute.how, Reduce)
    return tuple(a for a in compute.how.axes if a in loops)


def _position(how: Reduce) -> Index:
    return flatten([axis_index(a) for a in how.axes], [a.extent for a in how.axes])
