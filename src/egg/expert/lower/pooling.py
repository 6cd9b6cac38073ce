"""Windows: average, maximum and adaptive pooling in one to three dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from egg.expert.index import Index, divide
from egg.expert.ir import Bound, Scalar
from egg.expert.lower.build import Build, Lowering
from egg.expert.lower.dtypes import FLOATING
from egg.expert.lower.elements import Elements, Indices, cast, computed, filled, guarded, op, positions, remap

Sizes = int | Sequence[int]


@dataclass(frozen=True)
class Window:
    """How a pooled dimension reads its input: output o and step k read `o * stride - padding + k * dilation`."""

    extent: int
    outputs: int
    size: int
    stride: int
    padding: int
    dilation: int = 1

    def read(self, output: Index, step: Index) -> Index:
        """Returns the position in the input, which may lie in the padding."""
        return output * self.stride + step * self.dilation - self.padding

    @property
    def inside(self) -> bool:
        """Whether no window reaches outside the input."""
        reach = (self.outputs - 1) * self.stride - self.padding + (self.size - 1) * self.dilation
        return self.padding == 0 and reach < self.extent


def expanded(sizes: Sizes, rank: int) -> list[int]:
    """Returns one number for each of `rank` dimensions."""
    given = [sizes] if isinstance(sizes, int) else list(sizes)
    return given * rank if len(given) == 1 else given


def windows_of(
    x: Elements, outputs: Sequence[int], kernel: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes = 1
) -> list[Window]:
    """Returns the windows of the last dimensions of `x`, given the extents of the result."""
    rank = len(outputs)
    size = expanded(kernel, rank)
    steps = size if stride == () or stride is None else expanded(stride, rank)
    rows = zip(x.shape[-rank:], outputs, size, steps, expanded(padding, rank), expanded(dilation, rank), strict=True)
    return [Window(*row) for row in rows]


def windowed(x: Elements, windows: Sequence[Window], other: Scalar) -> Elements:
    """Returns the tensor of shape (..., outputs..., sizes...) with the windows, `other` in the padding."""
    rank, lead = len(windows), x.rank - len(windows)
    shape = (*x.shape[:lead], *(w.outputs for w in windows), *(w.size for w in windows))

    def places(at: Indices) -> list[Index]:
        return [w.read(at[lead + n], at[lead + rank + n]) for n, w in enumerate(windows)]

    def bounds(at: Indices) -> list[Bound]:
        return [Bound(i, 0, w.extent) for i, w in zip(places(at), windows, strict=True)]

    return guarded(remap(x, shape, lambda at: (*at[:lead], *places(at))), bounds, other)


def _inner(x: Elements, rank: int) -> range:
    return range(x.rank - rank, x.rank)


def _average(
    b: Build, x: Elements, windows: Sequence[Window], count_include_pad: bool, divisor: int | None
) -> Elements:
    v = computed(x)
    spread = windowed(v, windows, 0)
    total = b.reduce("sum", spread, _inner(spread, len(windows)), "sum")
    if divisor is not None:
        return total / divisor
    whole = 1
    counts: list[Elements] = []
    lead = v.rank - len(windows)
    for n, w in enumerate(windows):
        last = (w.outputs - 1) * w.stride - w.padding + w.size
        if w.inside or (count_include_pad and last <= w.extent + w.padding):
            whole *= w.size
        else:
            counts.append(_counted(total.shape, lead + n, w, count_include_pad))
    divided = total if whole == 1 else total / whole
    for number in counts:
        divided = divided / cast(number, v.dtype)
    return divided


def _counted(shape: tuple[int, ...], dim: int, w: Window, include_pad: bool) -> Elements:
    """Returns how many elements of its window an output of `dim` averages over."""
    start = positions(shape, lambda at: at[dim] * w.stride - w.padding)
    end = op("minimum", start + w.size, w.extent + w.padding)
    if include_pad:
        return end - start
    return op("minimum", end, w.extent) - op("maximum", start, 0)


def _avg_pool(rank: int) -> Lowering:
    def lowering(
        b: Build,
        x: Elements,
        kernel_size: Sizes,
        stride: Sizes = (),
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Elements:
        windows = windows_of(x, b.shape[-rank:], kernel_size, stride, padding)
        return _average(b, x, windows, count_include_pad, divisor_override)

    return lowering


def _max_pool(rank: int) -> Lowering:
    """Maximum pooling; the second result, where there is one, is the flat position in the input's last dimensions."""

    def lowering(
        b: Build,
        x: Elements,
        kernel_size: Sizes,
        stride: Sizes = (),
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> tuple[Elements, ...]:
        windows = windows_of(x, b.shape[-rank:], kernel_size, stride, padding, dilation)
        v = computed(x)
        spread = windowed(v, windows, _lowest(v.dtype))
        top = b.reduce("max", spread, _inner(spread, rank), 0)
        if b.results == 1:
            return (top,)
        step = b.reduce("argmax", spread, _inner(spread, rank), "step")
        return top, _input_position(step, windows)

    return lowering


def _lowest(dtype: str) -> Scalar:
    lowest = {"int8": -(2**7), "int16": -(2**15), "int32": -(2**31), "int64": -(2**63), "uint8": 0}
    return -float("inf") if dtype in FLOATING else lowest[dtype]


def _input_position(step: Elements, windows: Sequence[Window]) -> Elements:
    """Returns the flat position in the input of a flat position within the window."""
    lead = step.rank - len(windows)
    bases = [
        positions(step.shape, lambda at, n=n, w=w: at[lead + n] * w.stride - w.padding) for n, w in enumerate(windows)
    ]
    sizes, extents = [w.size for w in windows], [w.extent for w in windows]
    return _flat_position(step, bases, sizes, extents, [w.dilation for w in windows])


def _flat_position(
    step: Elements, bases: list[Elements], sizes: list[int], extents: Sequence[int], dilations: list[int]
) -> Elements:
    """Returns the row-major position of `base + dilation * k` in `extents`, with `step` the flat position of the k.

    A window of nothing but -inf may name its padding first; it then counts as the edge.
    """
    result, inner = filled(0, "int64", step.shape), prod(sizes)
    for base, size, extent, dilation in zip(bases, sizes, extents, dilations, strict=True):
        inner //= size
        within = op("remainder", op("floor_divide", step, inner), size)
        result = result * extent + op("maximum", base + within * dilation, 0)
    return result


@dataclass(frozen=True)
class Adaptive:
    """Windows from floor(o I / O) to ceil((o + 1) I / O), for outputs o of O and extent I."""

    extent: int
    outputs: int

    def start(self, output: Index) -> Index:
        """Returns the first position of a window."""
        return divide(output * self.extent, self.outputs)

    def end(self, output: Index) -> Index:
        """Returns the position after the last of a window."""
        return divide((output + 1) * self.extent + (self.outputs - 1), self.outputs)

    @property
    def even(self) -> bool:
        """Whether all windows are of one size."""
        return self.outputs > 0 and self.extent % self.outputs == 0

    @property
    def size(self) -> int:
        """The size of the longest window."""
        n, total = self.extent, self.outputs
        return max((-(-(o + 1) * n // total) - o * n // total for o in range(total)), default=1)


def _adaptive(x: Elements, windows: Sequence[Adaptive], other: Scalar) -> Elements:
    """Returns the tensor of shape (..., outputs..., sizes...) with the windows, `other` past their ends."""
    rank, lead = len(windows), x.rank - len(windows)
    shape = (*x.shape[:lead], *(w.outputs for w in windows), *(w.size for w in windows))

    def index(at: Indices) -> Indices:
        return (*at[:lead], *(w.start(at[lead + n]) + at[lead + rank + n] for n, w in enumerate(windows)))

    def bounds(at: Indices) -> list[Bound]:
        past = [
            w.start(at[lead + n]) + at[lead + rank + n] - w.end(at[lead + n])
            for n, w in enumerate(windows)
            if not w.even
        ]
        return [Bound(p, p.bounds()[0], 0) for p in past]

    return guarded(remap(x, shape, index), bounds, other)


def _adaptive_windows(x: Elements, outputs: Sequence[int]) -> list[Adaptive]:
    return [Adaptive(*pair) for pair in zip(x.shape[-len(outputs) :], outputs, strict=True)]


def _adaptive_avg(rank: int) -> Lowering:
    def lowering(b: Build, x: Elements, output_size: Sizes) -> Elements:
        v, lead = computed(x), x.rank - rank
        windows = _adaptive_windows(v, b.shape[-rank:])
        spread = _adaptive(v, windows, 0)
        total = b.reduce("sum", spread, _inner(spread, rank), "sum")
        whole = prod(w.size for w in windows if w.even)
        divided = total if whole == 1 else total / whole
        for n, w in enumerate(windows):
            if not w.even:
                length = positions(b.shape, lambda at, n=n, w=w: w.end(at[lead + n]) - w.start(at[lead + n]))
                divided = divided / cast(length, v.dtype)
        return divided

    return lowering


def _adaptive_max(rank: int) -> Lowering:
    def lowering(b: Build, x: Elements, output_size: Sizes) -> tuple[Elements, Elements]:
        v, lead = computed(x), x.rank - rank
        windows = _adaptive_windows(v, b.shape[-rank:])
        spread = _adaptive(v, windows, _lowest(v.dtype))
        top = b.reduce("max", spread, _inner(spread, rank), 0)
        step = b.reduce("argmax", spread, _inner(spread, rank), "step")
        bases = [positions(b.shape, lambda at, n=n, w=w: w.start(at[lead + n])) for n, w in enumerate(windows)]
        return top, _flat_position(step, bases, [w.size for w in windows], v.shape[lead:], [1] * rank)

    return lowering


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        **{f"aten.avg_pool{n}d.default": _avg_pool(n) for n in (1, 2, 3)},
        **{f"aten.max_pool{n}d.default": _max_pool(n) for n in (1, 2, 3)},
        **{f"aten.max_pool{n}d_with_indices.default": _max_pool(n) for n in (1, 2, 3)},
        **{f"aten.adaptive_avg_pool{n}d.default": _adaptive_avg(n) for n in (1, 2, 3)},
        "aten._adaptive_avg_pool2d.default": _adaptive_avg(2),
        "aten._adaptive_avg_pool3d.default": _adaptive_avg(3),
        **{f"aten.adaptive_max_pool{n}d.default": _adaptive_max(n) for n in (1, 2, 3)},
    }
)
"""By overload name."""
