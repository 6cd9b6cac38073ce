"""Index arithmetic as C++ integer expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from egg.expert.index import Atom, Axis, Fetch, Index, Quotient, Remainder

FetchPrinter = Callable[[Fetch], str]

_INT32 = 2**31


def index_text(index: Index, names: Mapping[Axis, str], fetch: FetchPrinter) -> str:
    """Returns the index as C++ text of type int64_t, without outer parentheses."""
    parts = [_term(atom, coef, names, fetch) for atom, coef in index.terms]
    if index.const or not parts:
        parts.append(str(index.const))
    return " + ".join(parts).replace("+ -", "- ")


def split_by(index: Index, axis: Axis | None) -> tuple[Index, Index]:
    """Returns `(outer, inner)` whose sum is the index: `inner` has the terms that depend on `axis` and the constant."""
    if axis is None:
        return Index(index.terms), Index((), index.const)
    inner = tuple(t for t in index.terms if axis in Index((t,)).axes())
    outer = tuple(t for t in index.terms if t not in inner)
    return Index(outer), Index(inner, index.const)


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the row-major strides of a shape, in elements."""
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))


def _term(atom: Atom, coef: int, names: Mapping[Axis, str], fetch: FetchPrinter) -> str:
    text = _atom(atom, names, fetch)
    if coef == 1:
        return text
    return f"-{text}" if coef == -1 else f"{coef} * {text}"


def _atom(atom: Atom, names: Mapping[Axis, str], fetch: FetchPrinter) -> str:
    match atom:
        case Axis():
            return names[atom]
        case Fetch():
            return fetch(atom)
        case Quotient(index=index, divisor=divisor):
            return _division(index, divisor, "/", "egg::floor_quotient", names, fetch)
        case Remainder(index=index, divisor=divisor):
            return _division(index, divisor, "%", "egg::floor_remainder", names, fetch)


def _division(
    index: Index, divisor: int, sign: str, floored: str, names: Mapping[Axis, str], fetch: FetchPrinter
) -> str:
    """Prints in 32 bits where the range allows: those divisions vectorise, 64-bit ones do not."""
    low, high = index.bounds()
    text = index_text(index, names, fetch)
    if low < 0:
        return f"{floored}({text}, {divisor})"
    whole = f"int32_t({text})" if high < _INT32 else f"({text})"
    return f"({whole} {sign} {divisor})"
