"""Tensors as functions from indices to scalar expressions: the language in which the lowerings are written.

`Elements` composes like a tensor (`x * 2 + y`, `op("exp", x)`, `reshape(x, shape)`) and writes nothing down; `Build`
turns it into statements. Half types are read raw; `computed` converts them to float32 before arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from egg.expert.index import Index, flatten, unflatten
from egg.expert.ir import Apply, Bound, Cast, Constant, Expr, Guard, Load, Position, Scalar
from egg.expert.lower.dtypes import FLOATING, HALF, compute_dtype
from egg.expert.scalar_ops import result_dtype

Indices = tuple[Index, ...]
Operand = "Elements | Scalar"


@dataclass(frozen=True)
class Elements:
    """A tensor as an expression for each index."""

    shape: tuple[int, ...]
    dtype: str
    at: Callable[[Indices], Expr]
    """The element at an index, which has one entry for each dimension."""

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def __add__(self, other: Elements | Scalar) -> Elements:
        return op("add", self, other)

    def __radd__(self, other: Scalar) -> Elements:
        return op("add", other, self)

    def __sub__(self, other: Elements | Scalar) -> Elements:
        return op("sub", self, other)

    def __rsub__(self, other: Scalar) -> Elements:
        return op("sub", other, self)

    def __mul__(self, other: Elements | Scalar) -> Elements:
        return op("mul", self, other)

    def __rmul__(self, other: Scalar) -> Elements:
        return op("mul", other, self)

    def __truediv__(self, other: Elements | Scalar) -> Elements:
        return op("div", self, other)

    def __rtruediv__(self, other: Scalar) -> Elements:
        return op("div", other, self)

    def __neg__(self) -> Elements:
        return op("neg", self)


def filled(value: Scalar, dtype: str, shape: Sequence[int] = ()) -> Elements:
    """Returns a tensor whose elements are all one number."""
    element = constant_expr(value, dtype)
    return Elements(tuple(shape), dtype, lambda _: element)


def loaded(name: str, shape: Sequence[int], dtype: str) -> Elements:
    """Returns the elements of a named value."""
    return Elements(tuple(shape), dtype, lambda at: Load(name, at, dtype))


def positions(shape: Sequence[int], index: Callable[[Indices], Index]) -> Elements:
    """Returns an int64 tensor of index values."""
    return Elements(tuple(shape), "int64", lambda at: position_expr(index(at)))


def op(name: str, *args: Elements | Scalar) -> Elements:
    """Returns a scalar operator over broadcast arguments; numbers take the dtype of the tensors beside them."""
    tensors = [a for a in (args[1:] if name == "where" else args) if isinstance(a, Elements)]
    dtype = tensors[0].dtype
    lifted = [a if isinstance(a, Elements) else filled(a, dtype) for a in args]
    result = result_dtype(name, tuple(a.dtype for a in lifted))
    shape = broadcast_shape(*(a.shape for a in lifted))
    spread = [broadcast(a, shape) for a in lifted]
    return Elements(shape, result, lambda at: Apply(name, tuple(a.at(at) for a in spread), result))


def cast(x: Elements, dtype: str) -> Elements:
    """Returns the tensor converted to `dtype`, with PyTorch's rounding."""
    return x if x.dtype == dtype else Elements(x.shape, dtype, lambda at: cast_expr(x.at(at), dtype))


def computed(x: Elements, dtype: str | None = None) -> Elements:
    """Returns the tensor in the dtype in which values of `dtype` (default: its own) are computed."""
    return cast(x, compute_dtype(dtype or x.dtype))


def truth(x: Elements) -> Elements:
    """Returns x != 0 as bool."""
    return x if x.dtype == "bool" else op("ne", computed(x), 0)


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape to which all broadcast. Raises ValueError where they do not."""
    rank = max(map(len, shapes), default=0)
    result: list[int] = []
    for extents in zip(*((1,) * (rank - len(s)) + s for s in shapes), strict=True):
        wide = {e for e in extents if e != 1}
        if len(wide) > 1:
            raise ValueError(f"shapes {shapes} do not broadcast")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def broadcast(x: Elements, shape: tuple[int, ...]) -> Elements:
    """Returns the tensor expanded to `shape`."""
    if x.shape == shape:
        return x
    skip = len(shape) - x.rank

    def at(index: Indices) -> Expr:
        return x.at(tuple(Index() if e == 1 else i for i, e in zip(index[skip:], x.shape, strict=True)))

    return Elements(shape, x.dtype, at)


def reshape(x: Elements, shape: Sequence[int]) -> Elements:
    """Returns the tensor with the same elements in row-major order in another shape."""
    target = tuple(shape)
    if target == x.shape:
        return x
    return remap(x, target, lambda at: unflatten(flatten(at, target), x.shape) if x.numel else (Index(),) * x.rank)


def remap(x: Elements, shape: Sequence[int], index: Callable[[Indices], Indices]) -> Elements:
    """Returns a tensor of `shape` that reads `x` at `index` of its own index."""
    return Elements(tuple(shape), x.dtype, lambda at: x.at(index(at)))


def guarded(x: Elements, bounds: Callable[[Indices], Sequence[Bound]], other: Elements | Scalar) -> Elements:
    """Returns `x` where all bounds hold, else `other`; `x` is not read elsewhere. Half types become float32."""
    body = computed(x)
    rest = computed(other) if isinstance(other, Elements) else filled(other, body.dtype, x.shape)
    return Elements(x.shape, body.dtype, lambda at: guard_expr(bounds(at), body.at(at), rest.at(at)))


def cast_expr(expr: Expr, dtype: str) -> Expr:
    """Returns the expression converted to `dtype`; a constant that loses nothing is converted here."""
    if expr.dtype == dtype:
        return expr
    if isinstance(expr, Constant) and dtype not in HALF:
        if dtype in FLOATING and expr.dtype not in HALF:
            return Constant(float(expr.value), dtype)
        if expr.dtype not in FLOATING and dtype == "int64":
            return Constant(int(expr.value), dtype)
    return Cast(expr, dtype)


def constant_expr(value: Scalar, dtype: str) -> Constant:
    """Returns a literal with a Python number of the kind that the dtype has."""
    if dtype in FLOATING:
        return Constant(float(value), dtype)
    return Constant(bool(value) if dtype == "bool" else int(value), dtype)


def position_expr(index: Index) -> Expr:
    """Returns an index as an int64 expression."""
    known = index.as_constant()
    return Position(index) if known is None else Constant(known, "int64")


def guard_expr(bounds: Sequence[Bound], body: Expr, other: Expr) -> Expr:
    """Returns the guarded expression without the bounds that always hold; `other` where one never holds."""
    kept: list[Bound] = []
    for bound in bounds:
        low, high = bound.index.bounds()
        if bound.low >= bound.high or high < bound.low or low >= bound.high:
            return other
        if low < bound.low or high >= bound.high:
            kept.append(bound)
    return Guard(tuple(kept), body, other, body.dtype) if kept else body
