"""Reductions that threads share: each thread reduces its part, the parts are combined in the order of the threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from egg.expert.emit.dtypes import HALF, converted, held_type
from egg.expert.emit.indices import contiguous
from egg.expert.emit.point import Place, Point, Scope, dtype_of
from egg.expert.emit.reductions import accumulator_dtype, combination, extreme_start
from egg.expert.emit.text import Names, Text, identifier
from egg.expert.index import Axis, axis_index
from egg.expert.ir import Reduce
from egg.expert.loops import Array, Compute


@dataclass(frozen=True)
class Partial:
    """One shared reduction."""

    compute: Compute
    how: Reduce
    place: Place
    """Its field of the thread's partial results."""
    kept: tuple[Axis, ...]
    """Axes that index the field."""
    top: Place | None = None
    """Of a `sumexp`, the field of the maximum that its sum is relative to."""

    @property
    def field(self) -> str:
        """Name of the field."""
        return self.place.variable.removeprefix("partial.")

    @property
    def starts(self) -> dict[str, tuple[str, str]]:
        """C++ type and start of each field, by its name."""
        if self.top is None:
            return {self.field: (held_type(self.dtype), combination(self.how.kind, self.dtype).start)}
        ctype, top = held_type(self.dtype), self.top.array.dtype
        start = extreme_start(self.how.kind, top)
        return {f"{self.field}_top": (held_type(top), start), self.field: (ctype, f"{ctype}(0)")}

    @property
    def dtype(self) -> str:
        """Dtype of the field."""
        return self.place.array.dtype


def partial_of(compute: Compute, kept: Sequence[Axis]) -> Partial:
    """Returns the shared reduction of a compute. Raises ValueError for argmax and argmin, which are not shared."""
    how = compute.how
    assert isinstance(how, Reduce)
    if how.kind in ("argmax", "argmin"):
        raise ValueError(f"{compute.name}: {how.kind} across rows is not printed; keep its axes within one row")
    operand = dtype_of(compute.body)
    dtype = accumulator_dtype(how.kind, "float32" if operand in HALF else operand, True)
    shape = tuple(a.extent for a in kept)
    array = Array(compute.name, dtype, shape, contiguous(shape), "scratch")
    place = Place(array, f"partial.{identifier(compute.name)}")
    if how.kind != "sumexp":
        return Partial(compute, how, place, tuple(kept))
    maximum = replace(array, dtype=accumulator_dtype(how.kind, operand, False))
    return Partial(compute, how, place, tuple(kept), Place(maximum, f"{place.variable}_top"))


def print_struct(text: Text, kernel_id: str, partials: Sequence[Partial]) -> None:
    """Adds the type of one thread's partial results."""
    text.comment(f"What one thread of {kernel_id} has reduced so far.")
    with text.block(f"struct alignas(64) {kernel_id}_partial", "};"):
        for partial in partials:
            size = f"[{partial.place.array.numel}]" if partial.kept else ""
            text.line(*(f"{ctype} {field}{size};" for field, (ctype, _) in partial.starts.items()))
    text.line()


def print_memory(text: Text, kernel_id: str) -> None:
    """Adds the memory for the partial results of `team` threads."""
    start = f"static_cast<{kernel_id}_partial*>(memory.at_least(team * sizeof({kernel_id}_partial)))"
    text.line("static thread_local egg::Memory memory;", f"auto* const partials = {start};")


def print_clear(text: Text, partials: Sequence[Partial]) -> None:
    """Adds the starts of the reductions."""
    for partial in partials:
        for field, (_, start) in partial.starts.items():
            _for_threads(text, 0, partial, f"partials[thread].{field}", lambda to, start=start: f"{to} = {start};")


def print_combine(text: Text, partials: Sequence[Partial]) -> None:
    """Adds the combination of all threads into the first one."""
    for partial in partials:
        at = "[i]" if partial.kept else ""
        first, other = ([f"partials[{n}].{field}{at}" for field in partial.starts] for n in ("0", "thread"))
        if partial.top is None:
            body = combination(partial.how.kind, partial.dtype).step.format(to=first[0], value=other[0])
        else:
            body = f"egg::join_exponentials({', '.join((*first, *other))});"
        _for_threads(text, 1, partial, "", lambda _, body=body: body)


def print_end(
    text: Text, names: Names, places: Mapping[str, Place], axes: Mapping[Axis, str], partial: Partial
) -> None:
    """Adds the stores of the combined result; `axes` names the loop variables that are known here."""
    kept = [a for a in partial.kept if a.extent > 1 and a not in axes]
    known = {**axes, **{a: names.fresh(a.name) for a in kept}}
    point = Point(Scope(places, known, None), names)
    at = tuple(axis_index(a) for a in partial.kept)
    fields = [replace(partial.place, variable=f"partials[0].{field}") for field in partial.starts]
    value = ", ".join(point.element(field, at) for field in fields)
    if partial.top is not None:
        value = f"egg::exponentials({value})"
    compute = partial.compute
    for store in compute.stores:
        point.store(store, converted(value, partial.dtype, compute.dtype), compute.dtype)
    heads = [f"for (int64_t {known[a]} = 0; {known[a]} < {a.extent}; ++{known[a]})" for a in kept]
    _nested(text, heads, (*point.before.lines, *point.inside.lines))


def _for_threads(text: Text, first: int, partial: Partial, target: str, body: object) -> None:
    assert callable(body)
    head = f"for (int64_t thread = {first}; thread < team; ++thread)"
    if not partial.kept:
        text.line(f"{head} {body(target)}")
        return
    with text.block(head):
        text.line(f"for (int64_t i = 0; i < {partial.place.array.numel}; ++i) {body(f'{target}[i]')}")


def _nested(text: Text, heads: Sequence[str], lines: Sequence[str]) -> None:
    if not heads:
        text.line(*lines)
        return
    with text.block(heads[0]):
        _nested(text, heads[1:], lines)
