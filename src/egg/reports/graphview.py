"""The operator graph as a column of boxes with arrows, before and after."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from egg.reports import figures
from egg.schema.analysis import Analysis
from egg.schema.candidate import Candidate
from egg.schema.graph import Node, node_refs

_WIDTH, _BOX, _ROW, _GAP = 440, 330, 38, 20
_MOST_ROWS = 60
_ALLOCATIONS = frozenset({"empty", "empty_like", "empty_strided", "zeros", "zeros_like", "is_grad_enabled", "no_grad"})
_KERNEL = re.compile(r"k\d+\w*")


@dataclass(frozen=True)
class Box:
    """One operator, kernel or library call."""

    name: str
    detail: str
    kind: str
    """`op`, `kernel` or `library`; the style of the box."""
    share: float
    """Share of the whole cost, from 0 to 1; how strongly the box is filled."""
    sources: tuple[int, ...]
    """Positions of the boxes that it reads from."""


def operator_boxes(analysis: Analysis) -> list[Box]:
    """Returns a box for each operator that does work; views are looked through."""
    costs = {cost.name: cost for cost in analysis.ops}
    whole = sum(cost.floor_ms for cost in analysis.ops) or 1.0
    boxes: list[Box] = []
    origins: dict[str, tuple[int, ...]] = {}
    for node in analysis.graph.nodes:
        sources = tuple(dict.fromkeys(at for name in node_refs(node) for at in origins.get(name, ())))
        cost = costs.get(node.name)
        if cost is None or (cost.flops == 0 and cost.bytes == 0):
            made = sources
        else:
            detail = f"{_shape(node)} · {figures.count(cost.flops)}FLOP · {figures.count(cost.bytes)}B"
            boxes.append(Box(_short(node.op), detail, "op", cost.floor_ms / whole, sources))
            made = (len(boxes) - 1,)
        origins.update({value.name: made for value in node.outputs})
    return boxes


def candidate_boxes(candidate: Candidate) -> list[Box]:
    """Returns a box for each kernel and library call in the candidate's `forward`, in the order of the text."""
    try:
        tree = ast.parse(candidate.source)
    except SyntaxError:
        return []
    calls = [call for forward in _forwards(tree, candidate.entry) for call in _calls(forward)]
    boxes: list[Box] = []
    for name in calls:
        kind = _kind(name)
        if kind is not None:
            last = name.rpartition(".")[2]
            detail = _schedule(candidate, last) if kind == "kernel" else "library"
            boxes.append(Box(last, detail, kind, 0.0, (len(boxes) - 1,) if boxes else ()))
    return boxes


def column(boxes: Sequence[Box], label: str) -> Markup:
    """Returns the boxes below one another, neighbours joined by an arrow and the others by an arc on the right."""
    shown = boxes[:_MOST_ROWS]
    height = len(shown) * (_ROW + _GAP) - _GAP + 8
    parts = [_arc(source, at) for at, box in enumerate(shown) for source in box.sources]
    parts += [_box(at, box) for at, box in enumerate(shown)]
    svg = Markup('<svg class="graph" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg>').format(
        _WIDTH, max(height, 1), label, _ARROW, Markup("").join(parts)
    )
    left_out = len(boxes) - len(shown)
    return svg + Markup("<p class=dim>and {} more</p>").format(left_out) if left_out else svg


_ARROW = Markup(
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse"><path d="M0,0.5 8,4 0,7.5z"/></marker></defs>'
)


def _box(at: int, box: Box) -> Markup:
    y = at * (_ROW + _GAP) + 4
    shape = (
        '<g class="box {}"><title>{}: {}</title><rect x="4" y="{}" width="{}" height="{}" rx="7"/>'
        '<rect class="heat" x="4" y="{}" width="{}" height="{}" rx="7" fill-opacity="{}"/>'
        '<text class="name" x="16" y="{}">{}</text><text class="detail" x="16" y="{}">{}</text></g>'
    )
    heat = f"{0.65 * box.share:.3f}"
    name, detail = _cut(box.name, 38), _cut(box.detail, 54)
    return Markup(shape).format(
        box.kind, box.name, box.detail, y, _BOX, _ROW, y, _BOX, _ROW, heat, y + 16, name, y + 31, detail
    )


def _arc(source: int, target: int) -> Markup:
    step = _ROW + _GAP
    if target == source + 1:
        start, end = source * step + _ROW + 4, target * step + 4
        path = f"M40,{start} V{end - 1}"
    else:
        start, end = source * step + 4 + _ROW - 8, target * step + 4 + 8
        reach = _BOX + 4 + min(24 + 9 * (target - source), _WIDTH - _BOX - 12)
        path = f"M{_BOX + 4},{start} C{reach},{start} {reach},{end} {_BOX + 5},{end}"
    return Markup('<path class="edge" d="{}" marker-end="url(#arrow)"/>').format(path)


def _shape(node: Node) -> str:
    specs = [value.spec for value in node.outputs if value.spec is not None]
    return " ".join(f"{'×'.join(map(str, s.shape)) or 'scalar'} {s.dtype}" for s in specs[:1])


def _short(op: str) -> str:
    parts = op.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "aten" else op


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _forwards(tree: ast.Module, entry: str) -> Iterable[ast.FunctionDef]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == entry:
            yield from (f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "forward")


def _calls(function: ast.FunctionDef) -> list[str]:
    """Returns the dotted names that are called, in the order of the text."""
    found = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    found.sort(key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))
    return [name for call in found if (name := _dotted(call.func))]


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            owner = _dotted(value)
            return f"{owner}.{attr}" if owner else ""
        case _:
            return ""


def _kind(name: str) -> str | None:
    root, _, last = name.partition(".")[0], "", name.rpartition(".")[2]
    if _KERNEL.fullmatch(last):
        return "kernel"
    if root in ("torch", "F", "aten", "nn") and last not in _ALLOCATIONS:
        return "library"
    return None


def _schedule(candidate: Candidate, kernel: str) -> str:
    prefix = f"{kernel.partition('_')[0]}."
    values = {k.removeprefix(prefix): v for k, v in candidate.schedule.items() if k.startswith(prefix)}
    return " ".join(f"{knob}={value}" for knob, value in values.items()) or "native kernel"
