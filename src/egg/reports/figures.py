"""Figures as people read them. What was not measured reads `–`."""

from __future__ import annotations

from egg.reports.summary import Interval

ABSENT = "–"


def ms(value: float | None) -> str:
    """Returns milliseconds with three significant digits, in the unit that suits: `1.23 ms`, `45.6 µs`."""
    if value is None:
        return ABSENT
    if value >= 1000:
        return f"{value / 1000:.3g} s"
    if value >= 1:
        return f"{_three(value)} ms"
    return f"{_three(value * 1000)} µs"


def seconds(value: float | None) -> str:
    """Returns seconds: `45.2 s`, `2 min 5 s`."""
    if value is None:
        return ABSENT
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def ratio(value: float | None) -> str:
    """Returns a speedup: `2.31×`."""
    return ABSENT if value is None else f"{value:.2f}×"


def interval(value: Interval | None) -> str:
    """Returns a speedup with its interval: `2.31× [2.25, 2.38]`."""
    if value is None:
        return ABSENT
    if value.low is None or value.high is None:
        return ratio(value.value)
    return f"{ratio(value.value)} [{value.low:.2f}, {value.high:.2f}]"


def per_cent(value: float | None) -> str:
    """Returns a share: `43 %`."""
    return ABSENT if value is None else f"{value:.0f} %"


def count(value: float, unit: str = "") -> str:
    """Returns a large number with a prefix and its unit: `1.2 MB`, `544 B`, `12.6 M`."""
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{_three(value / limit)} {prefix}{unit}"
    return f"{value:.0f} {unit}".strip()


def sentence(text: str) -> str:
    """Returns the text with a capital at its head, unless it begins with a name such as `k0.lanes`."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0].isalpha() else text


def _three(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
