"""Index arithmetic: integer expressions over loop axes, kept affine where that is possible.

An `Index` is `const + sum(coef * atom)`. An atom is an axis, a floor division or a remainder of another
index by a positive constant, or an integer fetched from a tensor (a gather). Views, permutes, slices, expands
and reshapes are substitutions of indices, so they cost nothing; `divide` and `modulo` use the ranges of the
axes to undo what a reshape and its inverse do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Axis:
    """A loop variable that runs over `range(extent)`."""

    name: str
    extent: int


@dataclass(frozen=True)
class Quotient:
    """floor(index / divisor), divisor > 1."""

    index: Index
    divisor: int


@dataclass(frozen=True)
class Remainder:
    """index mod divisor, in range(divisor), divisor > 1."""

    index: Index
    divisor: int


@dataclass(frozen=True)
class Fetch:
    """An integer read from a tensor at an index: the gather of embeddings, targets and masks.

    A negative value counts from the end where `wrap` is the extent that it indexes.
    """

    source: str
    at: tuple[Index, ...]
    extent: int
    wrap: bool = False


Atom = Axis | Quotient | Remainder | Fetch


@dataclass(frozen=True)
class Index:
    """`const + sum(coef * atom)`; terms are sorted and have non-zero coefficients."""

    terms: tuple[tuple[Atom, int], ...] = ()
    const: int = 0

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.const + other)
        total = dict(self.terms)
        for atom, coef in other.terms:
            total[atom] = total.get(atom, 0) + coef
        return _index(total, self.const + other.const)

    def __sub__(self, other: Index | int) -> Index:
        return self + (other * -1 if isinstance(other, Index) else -other)

    def __mul__(self, factor: int) -> Index:
        return _index({atom: coef * factor for atom, coef in self.terms}, self.const * factor)

    def bounds(self) -> tuple[int, int]:
        """Returns the smallest and the largest value over all axes."""
        low = high = self.const
        for atom, coef in self.terms:
            atom_low, atom_high = _atom_bounds(atom)
            ends = (coef * atom_low, coef * atom_high)
            low, high = low + min(ends), high + max(ends)
        return low, high

    def axes(self) -> frozenset[Axis]:
        """Returns every axis that the value depends on, those inside atoms too."""
        return frozenset(axis for atom, _ in self.terms for axis in _atom_axes(atom))

    def coefficient(self, axis: Axis) -> int | None:
        """Returns the step in `axis`: 0 when it is absent, None when the index is not affine in it."""
        step = 0
        for atom, coef in self.terms:
            if atom == axis:
                step = coef
            elif axis in _atom_axes(atom):
                return None
        return step

    def as_axis(self) -> Axis | None:
        """Returns the axis when the index is exactly one axis, else None."""
        if self.const == 0 and len(self.terms) == 1:
            atom, coef = self.terms[0]
            if coef == 1 and isinstance(atom, Axis):
                return atom
        return None

    def as_constant(self) -> int | None:
        """Returns the value when it depends on nothing."""
        return None if self.terms else self.const

    def fetches(self) -> tuple[Fetch, ...]:
        """Returns every integer read that the value depends on, inner ones first."""
        return tuple(f for atom, _ in self.terms for f in _atom_fetches(atom))

    def atoms(self) -> Iterator[Atom]:
        """Yields every atom, each followed by those inside it."""
        for atom, _ in self.terms:
            yield atom
            match atom:
                case Quotient(index=inner) | Remainder(index=inner):
                    yield from inner.atoms()
                case Fetch(at=at):
                    for inner in at:
                        yield from inner.atoms()
                case Axis():
                    pass

    def substitute(self, by: Mapping[Axis, Index]) -> Index:
        """Returns the index with axes replaced, simplified anew."""
        result = Index((), self.const)
        for atom, coef in self.terms:
            result = result + _substitute_atom(atom, by) * coef
        return result


def axis_index(axis: Axis) -> Index:
    """Returns the index that is this axis; 0 for an axis of extent 1."""
    return Index() if axis.extent == 1 else Index(((axis, 1),))


def constant(value: int) -> Index:
    """Returns a constant index."""
    return Index((), value)


def fetch_index(fetch: Fetch) -> Index:
    """Returns the index that is an integer read from a tensor."""
    return Index(((fetch, 1),))


def divide(index: Index, divisor: int) -> Index:
    """Returns floor(index / divisor) with whole multiples taken out and known ranges used."""
    if divisor == 1:
        return index
    whole, rest = _split(index, divisor)
    low, high = rest.bounds()
    if low // divisor == high // divisor:
        return whole + low // divisor
    if len(rest.terms) == 1 and rest.const == 0:
        atom, coef = rest.terms[0]
        if coef == 1 and isinstance(atom, Quotient):
            return whole + divide(atom.index, atom.divisor * divisor)
        if coef == 1 and isinstance(atom, Remainder) and atom.divisor % divisor == 0:
            return whole + modulo(divide(atom.index, divisor), atom.divisor // divisor)
    scale = _common_factor(rest, divisor)
    if scale > 1:
        return whole + divide(_scaled_down(rest, scale), divisor // scale)
    return whole + Index(((Quotient(rest, divisor), 1),))


def modulo(index: Index, divisor: int) -> Index:
    """Returns index mod divisor, simplified in the same way."""
    if divisor == 1:
        return Index()
    _, rest = _split(index, divisor)
    low, high = rest.bounds()
    if low // divisor == high // divisor:
        return rest - divisor * (low // divisor)
    if len(rest.terms) == 1 and rest.const == 0:
        atom, coef = rest.terms[0]
        if coef == 1 and isinstance(atom, Remainder) and atom.divisor % divisor == 0:
            return modulo(atom.index, divisor)
    scale = _common_factor(rest, divisor)
    if scale > 1:
        return modulo(_scaled_down(rest, scale), divisor // scale) * scale
    return Index(((Remainder(rest, divisor), 1),))


def flatten(indices: Sequence[Index], shape: Sequence[int]) -> Index:
    """Returns the row-major position of `indices` in a tensor of `shape`, in elements."""
    position = Index()
    for index, extent in zip(indices, shape, strict=True):
        position = position * extent + index
    return position


def unflatten(position: Index, shape: Sequence[int]) -> tuple[Index, ...]:
    """Returns the indices in a tensor of `shape` of a row-major position; the inverse of `flatten`."""
    result: list[Index] = []
    inner = prod(shape)
    for extent in shape:
        inner = inner // extent if extent else 0
        result.append(Index() if extent <= 1 else modulo(divide(position, inner), extent))
    return tuple(result)


def _index(terms: Mapping[Atom, int], const: int) -> Index:
    kept = [(a, c) for a, c in terms.items() if c != 0]
    merged = _rejoin(kept)
    if merged is not None:
        return merged + const
    return Index(tuple(sorted(kept, key=lambda t: (-abs(t[1]), repr(t[0])))), const)


def _rejoin(terms: list[tuple[Atom, int]]) -> Index | None:
    """Returns the sum with `d * (x // d) + x % d` turned back into `x`, or None where there is no such pair."""
    total = dict(terms)
    for atom, coef in terms:
        if not isinstance(atom, Remainder):
            continue
        quotient = divide(atom.index, atom.divisor)
        step = coef * atom.divisor
        if any(total.get(other) != other_coef * step for other, other_coef in quotient.terms):
            continue
        rest = {a: c for a, c in terms if a != atom and a not in dict(quotient.terms)}
        return _index(rest, -quotient.const * step) + atom.index * coef
    return None


def _split(index: Index, divisor: int) -> tuple[Index, Index]:
    """Returns `(whole, rest)` with index = divisor * whole + rest and 0 <= rest.const < divisor."""
    whole = {a: c // divisor for a, c in index.terms if c % divisor == 0}
    rest = {a: c for a, c in index.terms if c % divisor != 0}
    return _index(whole, index.const // divisor), _index(rest, index.const % divisor)


def _common_factor(index: Index, divisor: int) -> int:
    from math import gcd

    factor = divisor
    for _, coef in index.terms:
        factor = gcd(factor, coef)
    return factor if index.const % factor == 0 else 1


def _scaled_down(index: Index, factor: int) -> Index:
    return Index(tuple((a, c // factor) for a, c in index.terms), index.const // factor)


def _atom_bounds(atom: Atom) -> tuple[int, int]:
    match atom:
        case Axis(extent=extent):
            return 0, max(extent - 1, 0)
        case Quotient(index=index, divisor=divisor):
            low, high = index.bounds()
            return low // divisor, high // divisor
        case Remainder(divisor=divisor):
            return 0, divisor - 1
        case Fetch(extent=extent):
            return 0, max(extent - 1, 0)


def _atom_axes(atom: Atom) -> frozenset[Axis]:
    match atom:
        case Axis():
            return frozenset((atom,))
        case Quotient(index=index) | Remainder(index=index):
            return index.axes()
        case Fetch(at=at):
            return frozenset(axis for index in at for axis in index.axes())


def _atom_fetches(atom: Atom) -> tuple[Fetch, ...]:
    match atom:
        case Axis():
            return ()
        case Quotient(index=index) | Remainder(index=index):
            return index.fetches()
        case Fetch(at=at):
            return (*(f for index in at for f in index.fetches()), atom)


def _substitute_atom(atom: Atom, by: Mapping[Axis, Index]) -> Index:
    match atom:
        case Axis():
            return by.get(atom, Index(((atom, 1),)))
        case Quotient(index=index, divisor=divisor):
            return divide(index.substitute(by), divisor)
        case Remainder(index=index, divisor=divisor):
            return modulo(index.substitute(by), divisor)
        case Fetch(source=source, at=at, extent=extent, wrap=wrap):
            return Index(((Fetch(source, tuple(i.substitute(by) for i in at), extent, wrap), 1),))
