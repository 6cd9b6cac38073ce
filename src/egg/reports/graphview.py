"""The operator graph as a column of boxes with arrows, before and after."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from markupsafe import Markup

from egg.reports import figures
from egg.schema.analysis import Analysis
from egg.schema.candidate import Candidate
from egg.schema.graph import Node, node_refs

_WIDTH, _BOX, _GAP = 440, 348, 20
_NAME_HEIGHT, _DETAIL_HEIGHT = 23, 15
_MOST_ROWS = 60
_FAST_PATH = "_forward_"
_DOC_LINES = 6
_NO_WORK = frozenset(
    {"empty", "empty_like", "empty_strided", "empty_permuted", "is_grad_enabled", "no_grad", "reshape", "device"}
)
"""Calls that allocate, look or make views."""
_KERNEL = re.compile(r"(k|run)\d+\w*")
_RUN = r"void {name}\([^)]*\) \{{\n(?P<body>.*?)\n\}}"
_DOC = r"(?P<doc>(?:^ *//[^\n]*\n)+)(?:^ *(?:template|INLINE|static)[^\n]*\n)*^[^\n/]*\b{name}(?:_row)?\("


@dataclass(frozen=True)
class Box:
    """One operator, kernel or library call."""

    name: str
    details: tuple[str, ...]
    """Lines below the name."""
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
            detail = f"{_shape(node)} · {figures.count(cost.flops, 'FLOP')} · {figures.count(cost.bytes, 'B')}"
            boxes.append(Box(_short(node.op), (detail,), "op", cost.floor_ms / whole, sources))
            made = (len(boxes) - 1,)
        origins.update({value.name: made for value in node.outputs})
    return boxes


def candidate_boxes(candidate: Candidate) -> list[Box]:
    """Returns a box for each kernel and library call in the candidate's `forward`, in the order of the text."""
    try:
        tree = ast.parse(candidate.source)
    except SyntaxError:
        return []
    boxes: list[Box] = []
    for name in (call for forward in _forwards(tree, candidate.entry) for call in _calls(forward)):
        for made in _boxes_of(candidate, name):
            boxes.append(replace(made, sources=(len(boxes) - 1,) if boxes else ()))
    return boxes


def column(boxes: Sequence[Box], label: str) -> Markup:
    """Returns the boxes below one another, neighbours joined by an arrow and the others by an arc on the right."""
    shown = boxes[:_MOST_ROWS]
    tops = list(accumulate((_height(box) + _GAP for box in shown), initial=4))
    parts = [_arc(shown, tops, source, at) for at, box in enumerate(shown) for source in box.sources]
    parts += [_box(top, box) for top, box in zip(tops, shown, strict=False)]
    svg = Markup('<svg class="graph" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg>').format(
        _WIDTH, max(tops[-1] - _GAP + 4, 1), label, _ARROW, Markup("").join(parts)
    )
    left_out = len(boxes) - len(shown)
    return svg + Markup('<p class="dim">and {} more</p>').format(left_out) if left_out else svg


_ARROW = Markup(
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse"><path d="M0,0.5 8,4 0,7.5z"/></marker></defs>'
)


def _height(box: Box) -> int:
    return _NAME_HEIGHT + _DETAIL_HEIGHT * len(box.details)


def _box(top: int, box: Box) -> Markup:
    frame = Markup('<rect{} x="4" y="{}" width="{}" height="{}" rx="7"{}/>')
    height, heat = _height(box), f"{0.65 * box.share:.3f}"
    parts = [
        Markup("<title>{}: {}</title>").format(box.name, " ".join(box.details)),
        frame.format("", top, _BOX, height, ""),
        frame.format(Markup(' class="heat"'), top, _BOX, height, Markup(' fill-opacity="{}"').format(heat)),
        Markup('<text class="name" x="16" y="{}">{}</text>').format(top + 16, _cut(box.name, 38)),
    ]
    for number, detail in enumerate(box.details):
        y = top + 31 + _DETAIL_HEIGHT * number
        parts.append(Markup('<text class="detail" x="16" y="{}">{}</text>').format(y, _cut(detail, 56)))
    return Markup('<g class="box {}">{}</g>').format(box.kind, Markup("").join(parts))


def _arc(boxes: Sequence[Box], tops: Sequence[int], source: int, target: int) -> Markup:
    bottom = tops[source] + _height(boxes[source])
    if target == source + 1:
        path = f"M40,{bottom} V{tops[target] - 1}"
    else:
        start, end = bottom - 8, tops[target] + 8
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
    """Yields the method that the first workload takes: its fast path where the author wrote one, or `forward`."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == entry:
            methods = {f.name: f for f in node.body if isinstance(f, ast.FunctionDef)}
            fast = [f for name, f in methods.items() if name.startswith(_FAST_PATH)]
            yield from fast[:1] or [f for name, f in methods.items() if name == "forward"]


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


def _boxes_of(candidate: Candidate, call: str) -> list[Box]:
    """Returns the boxes of one call: a native entry gives one for each kernel that it runs; others may give none."""
    root, last = call.partition(".")[0], call.rpartition(".")[2]
    if _KERNEL.fullmatch(last):
        return [_kernel_box(candidate, name) for name in _kernels_of(candidate.source, last)]
    if root in ("torch", "F", "nn") and last not in _NO_WORK:
        return [Box(_library_name(call), ("library",), "library", 0.0, ())]
    return []


def _library_name(call: str) -> str:
    return _short(call.removeprefix("torch.ops.")) if call.startswith("torch.ops.") else call.rpartition(".")[2]


def _kernels_of(source: str, entry: str) -> list[str]:
    """Returns the kernels that a native entry runs, in order; the entry itself where it names none."""
    run = re.search(_RUN.format(name=re.escape(entry)), source, re.DOTALL)
    return (re.findall(r"kernels::(\w+)\(", run["body"]) if run else []) or [entry]


def _kernel_box(candidate: Candidate, name: str) -> Box:
    doc = re.search(_DOC.format(name=re.escape(name)), candidate.source, re.MULTILINE)
    words = [line.strip().lstrip("/ ") for line in doc["doc"].splitlines()] if doc else []
    values = {k.partition(".")[2]: v for k, v in candidate.schedule.items() if k.partition(".")[0] == name}
    schedule = " ".join(f"{knob}={value}" for knob, value in values.items())
    return Box(name, tuple(text for text in (*words[:_DOC_LINES], schedule) if text), "kernel", 0.0, ())
