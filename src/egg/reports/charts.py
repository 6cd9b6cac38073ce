"""Charts as inline SVG. Bars use per cent, so that text keeps its size on any screen."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor, log2

from markupsafe import Markup, escape

from egg.reports import figures
from egg.reports.summary import EAGER, Summary, title_of
from egg.schema.run import Attempt

_WIDTH, _HEIGHT = 960, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 150, 16, 58


def bar(share: float, style: str, low: float | None = None, high: float | None = None) -> Markup:
    """Returns a horizontal bar of `share` (0 to 1) of its width, with a whisker from `low` to `high` where given."""
    parts = [_rect(0, share, style)]
    if low is not None and high is not None:
        parts.append(_line_pct(low, high))
    return _bar_svg(parts)


def saving(before: float, after: float, predicted: float | None, stage: str) -> Markup:
    """Returns what one move did to the time: what is left, what it saved or added, and a mark at the prediction.

    All are shares of the reference's time, from 0 to 1; larger ones are cut at the edge.
    """
    before, after = min(before, 1.0), min(after, 1.0)
    parts = [_rect(0, min(before, after), f"rest {stage}")]
    parts.append(_rect(after, before, f"saved {stage}") if after <= before else _rect(before, after, "added"))
    if predicted is not None:
        x = f"{100 * min(predicted, 1.0):.2f}%"
        parts.append(Markup('<line class="predicted" x1="{0}" x2="{0}" y1="0" y2="100%"/>').format(x))
    return _bar_svg(parts)


def attempts_chart(summary: Summary) -> Markup | None:
    """Returns all attempts by their speedup over eager, the best so far as a staircase; None where there is no way."""
    attempts = summary.state.attempts
    effects = [a.effect for a in attempts if a.effect]
    if not effects or len(attempts) < 2:
        return None
    lines = _levels(summary, max(effects))
    scale = _Scale(len(attempts), [*effects, *(level for _, level in lines)])
    parts = [*scale.grid(), *_reference_lines(scale, lines), _staircase(scale, attempts)]
    parts += [_mark(scale, at, attempt) for at, attempt in enumerate(attempts)]
    parts += _axis_labels(scale, len(attempts))
    label = "Speedup of every attempt over eager, in the order of the attempts"
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, label, Markup("").join(parts)
    )


class _Scale:
    """Positions in the chart: attempts from left to right, speedups from bottom to top by their logarithm."""

    def __init__(self, count: int, speedups: list[float]) -> None:
        self.count = max(count, 2)
        self.bottom = floor(2 * log2(min(1.0, *speedups))) / 2
        self.top = max(ceil(2 * log2(max(1.05, *speedups))) / 2, self.bottom + 0.5)

    def x(self, at: int) -> float:
        return _LEFT + 14 + (_WIDTH - _LEFT - _RIGHT - 28) * at / (self.count - 1)

    def y(self, speedup: float) -> float:
        share = (log2(speedup) - self.bottom) / (self.top - self.bottom)
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - min(max(share, 0.0), 1.0))

    def grid(self) -> list[Markup]:
        """Returns a line and a label for each half power of two, or each whole one where they would be too dense."""
        step = 0.5 if self.top - self.bottom <= 3 else 1.0 if self.top - self.bottom <= 8 else 2.0
        steps = round((self.top - self.bottom) / step)
        parts: list[Markup] = []
        for i in range(steps + 1):
            value = 2 ** (self.bottom + i * step)
            y = self.y(value)
            parts.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, "grid"))
            parts.append(_text(_LEFT - 8, y + 4, _tick(value), "end"))
        return parts


def _tick(value: float) -> str:
    if value >= 10:
        return f"{value:.0f}×"
    return f"{round(value, 2):g}×" if value >= 1 else f"{value:.2g}×"


def _levels(summary: Summary, best: float) -> list[tuple[str, float]]:
    """Returns the baselines as speedups over eager, and the floor where it is near enough to draw."""
    levels = [(rung.name, rung.over_eager.value) for rung in summary.rungs if rung.over_eager]
    eager = next((r.median_ms for r in summary.rungs if r.name == EAGER), None)
    if eager and summary.floor_ms and 1.0 <= eager / summary.floor_ms <= 4 * max(best, 1.0):
        levels.append(("roofline floor", eager / summary.floor_ms))
    return levels


def _reference_lines(scale: _Scale, levels: Iterable[tuple[str, float]]) -> list[Markup]:
    parts: list[Markup] = []
    last_y = float("inf")
    for name, level in sorted(levels, key=lambda named: named[1]):
        y = scale.y(level)
        label_y = min(y + 4, last_y - 15)
        last_y = label_y
        parts.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, "level floor" if name == "roofline floor" else "level"))
        parts.append(_text(_WIDTH - _RIGHT + 8, label_y, f"{name} {level:.2f}×", "start"))
    return parts


def _staircase(scale: _Scale, attempts: Iterable[Attempt]) -> Markup:
    points: list[str] = []
    best = None
    for at, attempt in enumerate(attempts):
        x = scale.x(at)
        if best is not None:
            points.append(f"{x:.1f},{scale.y(best):.1f}")
        if attempt.verdict == "accepted" and attempt.effect:
            best = attempt.effect
            points.append(f"{x:.1f},{scale.y(best):.1f}")
    return Markup('<polyline class="best" points="{}"/>').format(" ".join(points))


def _mark(scale: _Scale, at: int, attempt: Attempt) -> Markup:
    x, plan = scale.x(at), attempt.plan
    effect = figures.ratio(attempt.effect)
    label = f"{plan.index}: {plan.stage}, {title_of(attempt)}: {attempt.verdict}, {effect}. {attempt.reason}"
    if attempt.effect is None:
        y = _HEIGHT - _BOTTOM + 14
        path = f"M{x - 4:.1f},{y - 4:.1f}l8,8m0,-8l-8,8"
        return Markup('<path class="failed" d="{}"><title>{}</title></path>').format(path, label)
    shape = '<circle class="mark {} {}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>'
    radius = 6 if attempt.verdict == "accepted" else 4
    return Markup(shape).format(
        attempt.verdict, plan.stage, f"{x:.1f}", f"{scale.y(attempt.effect):.1f}", radius, label
    )


def _axis_labels(scale: _Scale, count: int) -> list[Markup]:
    step = max(1, ceil(count / 16))
    labels = [_text(scale.x(at), _HEIGHT - _BOTTOM + 36, str(at), "middle") for at in range(0, count, step)]
    return [*labels, _text(_LEFT, _HEIGHT - 4, "attempt (× did not pass)", "start")]


def _bar_svg(parts: Iterable[Markup]) -> Markup:
    return Markup('<svg class="bar" aria-hidden="true">{}</svg>').format(Markup("").join(parts))


def _rect(start: float, end: float, style: str) -> Markup:
    width = max(end - start, 0.0)
    shape = '<rect class="{}" x="{}%" width="{}%" y="0" height="100%" rx="3"/>'
    return Markup(shape).format(style, f"{100 * start:.2f}", f"{100 * width:.2f}")


def _line_pct(low: float, high: float) -> Markup:
    shape = '<line class="whisker" x1="{}%" x2="{}%" y1="50%" y2="50%"/>'
    return Markup(shape).format(f"{100 * low:.2f}", f"{100 * high:.2f}")


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    shape = '<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>'
    return Markup(shape).format(style, f"{x1:.1f}", f"{y1:.1f}", f"{x2:.1f}", f"{y2:.1f}")


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    shape = '<text x="{}" y="{}" text-anchor="{}">{}</text>'
    return Markup(shape).format(f"{x:.1f}", f"{y:.1f}", anchor, escape(text))
