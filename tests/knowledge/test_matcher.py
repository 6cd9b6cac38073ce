import pytest

from egg.knowledge.loader import load_principles
from egg.knowledge.matcher import holds, match
from egg.schema.principle import Predicate


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        ("==", 2, True), ("!=", 2, False), ("<", 3, True), ("<=", 2, True), (">", 2, False), (">=", 2, True),
        ("==", "2", False), (">", "1", False),
    ],
)  # fmt: skip
def test_a_condition_on_a_number(op: str, value: object, expected: bool) -> None:
    condition = Predicate.model_validate({"fact": "n", "op": op, "value": value})
    assert holds(condition, {"n": 2}) is expected


def test_a_condition_on_a_word() -> None:
    condition = Predicate(fact="bound", op="in", value=("memory", "launch"))
    assert holds(condition, {"bound": "memory"})
    assert not holds(condition, {"bound": "compute"})


@pytest.mark.parametrize("op", ["==", "!=", "<", "in"])
def test_an_unknown_fact_makes_every_condition_false(op: str) -> None:
    value = ("a",) if op == "in" else 1
    assert not holds(Predicate.model_validate({"fact": "n", "op": op, "value": value}), {"m": 1})


def test_match_keeps_the_order_and_needs_every_condition() -> None:
    principles = load_principles()
    found = match(principles, {"pointwise_ops": 3, "bound": "compute"})
    ids = [p.id for p in found]
    assert "fuse-pointwise" in ids
    assert "stream-large-outputs" not in ids
    assert ids == [p.id for p in principles if p.id in ids]
    assert "stream-large-outputs" in [p.id for p in match(principles, {"bound": "memory"})]
