"""The error ratios of one floating leaf: over all, of each slice, and of each element."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt

import torch
from torch.linalg import vector_norm

from egg.evaluation.correctness import tolerance

_CHUNK = 1 << 20
"""Elements that are widened to float64 at a time."""
_DEVICE_CHUNK = 1 << 26
"""The same on a GPU, where each step costs a wait."""


@dataclass(frozen=True)
class Found:
    """The ratios of a leaf, before its limits."""

    ratio_rms: float
    ratio_slice: float
    ratio_max: float
    worst: int
    gold_rms: float
    error_rms: float
    difference_rms: float
    elements: int
    """Compared by value, or by class where both are the same infinity or NaN."""


class Ratios:
    """Works through a leaf in chunks. All tensors are real; `shape` is the leaf's, for slices.

    An element counts where reference and oracle are finite. Where both are the same infinity or NaN, the candidate
    has to be that too; where they differ, nothing is known and nothing is asked.
    """

    def __init__(self, c: torch.Tensor, r: torch.Tensor, g: torch.Tensor, e: torch.Tensor, shape: torch.Size) -> None:
        self.shape = shape
        self.class_faults = 0
        self._infinite = 0
        self._full = c.shape
        self._dtype = c.dtype
        self._c, self._r, self._g, self._e = (t.reshape(-1) for t in (c, r, g, e))
        self._width = _slice_width(c.shape)
        self._chunk = _CHUNK if c.device.type == "cpu" else _DEVICE_CHUNK
        self._step = max(1, self._chunk // self._width) * self._width
        self._plain = bool(torch.isfinite(g.sum() + r.sum()))
        """True where no element needs a look at its class; a sum that overflows only costs that look."""

    def class_fault(self, infinite: bool = False) -> int | None:
        """Returns the first element that is not finite as expected; None where all are.

        With `infinite`, an infinity will do for NaN.
        """
        if self._plain and bool(torch.isfinite(self._c.sum())):
            return None
        first: int | None = None
        for part in self._parts():
            c, r, g = self._c[part], self._r[part], self._g[part]
            judged = torch.isfinite(g) & torch.isfinite(r)
            agreed = ~judged & (_class(r) == _class(g))
            self._infinite += int(agreed.sum())
            other = _class(c) != _class(r)
            if infinite:
                other &= ~(r.isnan() & c.isinf())
            wrong = (judged & ~torch.isfinite(c)) | (agreed & other)
            if bool(wrong.any()):
                self.class_faults += int(wrong.sum())
                first = part.start + int(wrong.nonzero()[0]) if first is None else first
        return first

    def measure(self, eps: float, least_rms: float, least_max: float) -> Found:
        """Returns the ratios, where `eps` times a value is the least error to assume of the reference."""
        tiny = torch.finfo(self._dtype).smallest_normal * torch.finfo(self._dtype).eps  # what a denormal rounds to
        sums, tops, slices, error_max, counted = self._pass()
        rms = [sqrt(s / max(counted, 1)) for s in sums]
        allowed = max(rms[0], eps * rms[1], least_rms, tiny)
        relative = max(eps, rms[0] / rms[1]) if rms[1] > 0 else eps
        floor = max(allowed * tolerance.SLICE_FLOOR, least_rms)
        ratio_slice = max((_largest_slice(s, relative, floor) for s in (*slices, *self._other_slices())), default=0.0)
        ratio_max, worst = self._largest(tops, max(error_max, least_max, tiny), eps)
        return Found(
            _ratio(rms[2], allowed), ratio_slice, ratio_max, worst, rms[1], rms[0], rms[2], counted + self._infinite
        )

    def at(self, place: int) -> tuple[float, float, float]:
        """Returns candidate, reference and oracle at an element."""
        got, reference, gold = (t[place].item() for t in (self._c, self._r, self._g))
        return got, reference, gold

    def _parts(self) -> list[slice]:
        return [slice(at, min(at + self._step, self._g.numel())) for at in range(0, self._g.numel(), self._step)]

    def _pass(self) -> tuple[list[float], list[float], list[torch.Tensor], float, int]:
        """Returns sums of squares of error, oracle and difference, then the largest difference of each part, the mean
        squares of each slice, the largest error, and how many elements count."""
        sums = torch.zeros(3, dtype=torch.float64)
        tops: list[float] = []
        slices: list[torch.Tensor] = []
        error_max, counted = 0.0, 0
        for part in self._parts():
            e, g, d, count = self._widened(part)
            tops.append(_top(d))
            error_max = max(error_max, _top(e))
            counted += count
            rows = e.numel() // self._width
            whole = rows * self._width
            squares = torch.stack([vector_norm(t[:whole].view(rows, self._width), dim=1) for t in (e, g, d)]).square()
            rest = torch.stack([vector_norm(t[whole:]) for t in (e, g, d)]).square()
            sums += (squares.sum(1) + rest).cpu()
            if rows and self._g.numel() >= 2 * self._width:
                slices.append(squares / self._width)
        return sums.tolist(), tops, slices, error_max, counted

    def _widened(self, part: slice) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
        """Returns error, oracle and difference in float64, zero where an element does not count, and the count."""
        g, e = self._g[part].double(), self._e[part].double()
        d = torch.sub(self._c[part], g)  # widened element by element, without a copy
        if self._plain:
            return e, g, d, g.numel()
        judged = torch.isfinite(g) & torch.isfinite(self._r[part])
        e, d, g = torch.where(judged, e, 0.0), torch.where(judged, d, 0.0), torch.where(judged, g, 0.0)
        return e, g, d, int(judged.sum())

    def _largest(self, tops: list[float], error_max: float, eps: float) -> tuple[float, int]:
        """Returns the largest ratio of an element and its place; parts that can't hold it are passed over."""
        best, where = -1.0, 0
        for top, part in sorted(zip(tops, self._parts(), strict=True), key=lambda pair: -pair[0]):
            if top / error_max <= best:
                break
            _, g, d, _ = self._widened(part)
            d = d.abs()
            ratio = torch.where(d == 0, 0.0, d / torch.clamp(eps * g.abs(), min=error_max))
            if (most := ratio.max().item()) > best:
                best, where = most, part.start + int(ratio.argmax())
        return best, where

    def _other_slices(self) -> list[torch.Tensor]:
        """Returns mean squares of a sample of slices across each dimension: a channel, a column, a sample."""
        found: list[torch.Tensor] = []
        total = self._g.numel()
        for dim, extent in enumerate(self._full):
            elements = total // max(extent, 1)
            if extent < 2 or elements < tolerance.SLICE_ELEMENTS:
                continue
            count = max(1, min(tolerance.SLICES, extent, self._chunk // elements))
            picked = torch.randint(extent, (count,)).to(self._g.device)
            c, r, g, e = (t.view(self._full).index_select(dim, picked) for t in (self._c, self._r, self._g, self._e))
            parts = [e.double(), g.double(), c.double() - g.double()]
            if not self._plain:
                judged = torch.isfinite(g) & torch.isfinite(r)
                parts = [torch.where(judged, t, 0.0) for t in parts]
            squares = torch.stack(parts).movedim(dim + 1, 1).flatten(2).square()
            found.append(squares.mean(-1))
        return found


def _slice_width(shape: torch.Size) -> int:
    """Returns the elements of a slice of trailing dimensions; blocks of a fixed size where these are large."""
    width = 1
    for extent in reversed(shape):
        if width >= tolerance.SLICE_ELEMENTS:
            break
        width *= extent
    return width if tolerance.SLICE_ELEMENTS <= width <= tolerance.SLICE_LARGEST else tolerance.SLICE_LARGEST


def _largest_slice(squares: torch.Tensor, relative: float, floor: float) -> float:
    error, gold, difference = squares.sqrt()
    allowed = error.maximum(relative * gold).clamp(min=floor)
    return torch.where(difference == 0, 0.0, difference / allowed).max().item()


def _top(tensor: torch.Tensor) -> float:
    """Returns the largest magnitude, in one pass."""
    least, most = tensor.aminmax()
    return max(-least.item(), most.item())


def _class(tensor: torch.Tensor) -> torch.Tensor:
    """Returns 0 for finite, 1 for NaN, 2 for +inf, 3 for -inf."""
    return tensor.isnan() * 1 + tensor.isposinf() * 2 + tensor.isneginf() * 3


def _ratio(difference: float, allowed: float) -> float:
    if difference == 0:
        return 0.0
    return difference / allowed if allowed > 0 and isfinite(difference) else inf
