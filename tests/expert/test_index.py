"""Index arithmetic is checked against Python integers over the whole range of the axes."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from egg.expert.index import (
    Axis,
    Fetch,
    Index,
    Quotient,
    Remainder,
    axis_index,
    divide,
    flatten,
    modulo,
    unflatten,
)  # fmt: skip

I, J, K = Axis("i", 4), Axis("j", 6), Axis("k", 5)


def evaluate(index: Index, env: dict[Axis, int]) -> int:
    total = index.const
    for atom, coef in index.terms:
        match atom:
            case Axis():
                value = env[atom]
            case Quotient(index=inner, divisor=d):
                value = evaluate(inner, env) // d
            case Remainder(index=inner, divisor=d):
                value = evaluate(inner, env) % d
            case Fetch():
                raise AssertionError("no fetch here")
        total += coef * value
    return total


def everywhere(*axes: Axis) -> list[dict[Axis, int]]:
    return [dict(zip(axes, v, strict=True)) for v in product(*(range(a.extent) for a in axes))]


coefs = st.integers(-12, 12)
affine = st.builds(
    lambda a, b, c, d: axis_index(I) * a + axis_index(J) * b + axis_index(K) * c + d, coefs, coefs, coefs, coefs
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(affine, st.integers(1, 12), st.integers(1, 12))
def test_divide_and_modulo_agree_with_integers(index: Index, d: int, e: int) -> None:
    nested = modulo(divide(index, d), e) + divide(modulo(index, d * e), d) * 3
    for env in everywhere(I, J, K):
        n = evaluate(index, env)
        assert evaluate(divide(index, d), env) == n // d
        assert evaluate(modulo(index, d), env) == n % d
        assert evaluate(nested, env) == (n // d) % e + 3 * ((n % (d * e)) // d)
        low, high = nested.bounds()
        assert low <= evaluate(nested, env) <= high


def test_a_reshape_and_its_inverse_cancel() -> None:
    indices = (axis_index(I), axis_index(J), axis_index(K))
    merged = flatten(indices, (4, 6, 5))
    assert unflatten(merged, (4, 6, 5)) == indices
    assert unflatten(merged, (24, 5)) == (axis_index(I) * 6 + axis_index(J), axis_index(K))


def test_splitting_an_axis_gives_quotient_and_remainder_that_rejoin() -> None:
    first, second = unflatten(axis_index(J), (2, 3))
    assert flatten((first, second), (2, 3)) == axis_index(J)


def test_substitution_simplifies_through_atoms() -> None:
    wide = Axis("w", 24)
    row, column = unflatten(axis_index(wide), (4, 6))
    by = {wide: axis_index(I) * 6 + axis_index(J)}
    assert row.substitute(by) == axis_index(I)
    assert column.substitute(by) == axis_index(J)


def test_coefficient_tells_affine_from_not() -> None:
    index = axis_index(I) * 3 + divide(axis_index(J), 4)
    assert index.coefficient(I) == 3
    assert index.coefficient(K) == 0
    assert index.coefficient(J) is None


def test_a_position_of_three_dimensions_comes_back_whole() -> None:
    flat = Axis("flat", 24)
    position = Index(((flat, 1),))
    assert flatten(unflatten(position, (2, 3, 4)), (2, 3, 4)) == position
