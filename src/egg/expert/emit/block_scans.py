"""Running sums along the vectorised loop: block after block, so that all but the additions are vector code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from egg.expert.emit.dtypes import HALF, converted, held_type
from egg.expert.emit.point import Point, dtype_of
from egg.expert.emit.text import Names, Text
from egg.expert.index import Axis
from egg.expert.ir import Scan, loads
from egg.expert.loops import Compute, Stage


@dataclass(frozen=True)
class BlockLoop:
    """The loop that is cut into blocks."""

    variable: str
    begin: str
    end: str
    lanes: str
    """Length of the vectorised loops."""

    @property
    def length(self) -> str:
        """Length of a block: what one loop wrote has left the store buffer before the next one reads it."""
        return f"8 * {self.lanes}"


def scans_in_blocks(stage: Stage, axis: Axis) -> bool:
    """Returns whether all that a stage does beside plain values is to sum along `axis`, its last loop, forwards."""
    ways = [c.how for c in stage.computes if c.how is not None]
    return bool(ways) and all(
        isinstance(how, Scan) and how.axis == axis and how.kind == "sum" and not how.reverse for how in ways
    )


def print_block_scans(
    text: Text,
    names: Names,
    stage: Stage,
    loop: BlockLoop,
    point_with: Callable[[str], Point],
    runs: Mapping[str, str],
) -> None:
    """Adds the loop. `point_with(slot)` makes the point of one vectorised loop, `runs` names the running sums.

    The stage is cut behind each scan: a part hands on to later ones what they need, by a block of each value.
    """
    levels = _levels(stage.computes)
    blocks = {c.name: names.fresh(f"{c.name}_block") for c in stage.computes if _is_handed_on(c, stage, levels)}
    first, last = names.fresh(f"{loop.variable}_block"), names.fresh(f"{loop.variable}_end")
    body = Text()
    for level in range(1 + max(n + _is_scan(c) for c, n in zip(stage.computes, levels.values(), strict=True))):
        slot = names.fresh("lane")
        point = point_with(slot)
        elements = {name: f"{block}[{loop.variable} - {first}]" for name, block in blocks.items()}
        _print_part(point, stage.computes, levels, level, elements)
        text.line(*point.before.lines)
        head = f"egg::for_lanes<{loop.lanes}>({first}, {last}, [&](int64_t {loop.variable}, int64_t {slot}) INLINE"
        if slot not in point.inside.render():
            head = head.replace(f"int64_t {slot}", "int64_t")
        with body.block(head, "});"):
            body.line(*point.inside.lines)
        for compute in stage.computes:
            if _is_scan(compute) and levels[compute.name] == level:
                body.line(f"egg::scan_sum({blocks[compute.name]}, {runs[compute.name]}, {last} - {first});")
    for compute in stage.computes:
        if compute.name in blocks:
            text.line(f"alignas(64) {held_type(_block_dtype(compute))} {blocks[compute.name]}[{loop.length}];")
    with text.block(f"for (int64_t {first} = {loop.begin}; {first} < {loop.end}; {first} += {loop.length})"):
        text.line(f"const int64_t {last} = egg::lesser({first} + {loop.length}, {loop.end});")
        text.line(*body.lines)


def _print_part(
    point: Point, computes: Sequence[Compute], levels: Mapping[str, int], level: int, elements: Mapping[str, str]
) -> None:
    """Prints what is computed between two rounds of scans: ends of the last ones, plain values, starts of the next."""
    for compute in computes:
        if levels[compute.name] >= level or compute.name not in elements:
            continue
        value = elements[compute.name]
        if not _is_scan(compute):
            point.name_value(compute, value)
            continue
        name = point.fresh(compute)
        value = converted(value, _block_dtype(compute), compute.dtype)
        point.inside.line(f"const {held_type(compute.dtype)} {name} = {value};")
        point.name_value(compute, name)
        if levels[compute.name] == level - 1:
            for store in compute.stores:
                point.store(store, name, compute.dtype)
    now = tuple(c for c in computes if levels[c.name] == level)
    point.count(now)
    for compute in now:
        value = point.value(compute) if _is_scan(compute) else point.define(compute)
        if compute.name in elements:
            point.inside.line(f"{elements[compute.name]} = {value};")


def _levels(computes: Sequence[Compute]) -> dict[str, int]:
    """Returns for each compute how many scans, one after the other, it waits for."""
    levels: dict[str, int] = {}
    for compute in computes:
        read = {load.source for load in loads(compute.body)}
        levels[compute.name] = max(
            (levels[c.name] + _is_scan(c) for c in computes if c.name in levels and c.name in read), default=0
        )
    return levels


def _is_handed_on(compute: Compute, stage: Stage, levels: Mapping[str, int]) -> bool:
    """Returns whether a part after the compute's own reads it; every scan ends in the next part."""
    later = [c for c in stage.computes if levels[c.name] > levels[compute.name]]
    return _is_scan(compute) or any(load.source == compute.name for c in later for load in loads(c.body))


def _is_scan(compute: Compute) -> bool:
    return isinstance(compute.how, Scan)


def _block_dtype(compute: Compute) -> str:
    """Returns the dtype of what a block holds: a scan's block holds its operands first."""
    dtype = dtype_of(compute.body) if _is_scan(compute) else compute.dtype
    return "float32" if dtype in HALF else dtype
