"""Every cheat of the list is caught, has no effect, or is named for what it is."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from egg.errors import TaskError
from egg.evaluation.evaluator import LocalEvaluator
from egg.evaluation.workers.isolation import Isolation
from egg.schema.evaluation import Evaluation, Status

from .conftest import EvaluatorFor, candidate_of, model
from .fixture_files import FixtureFile, read_fixtures

CHEATS = read_fixtures(Path(__file__).parent / "cheats")
BYPASSES = {
    "patched allclose", "fake object", "frame walk", "gc module", "gc answer", "inherited Model", "shrunken globals",
}  # fmt: skip
"""What KernelBench's own checker accepts."""


def said(seen: Evaluation) -> str:
    """Returns all that an evaluation tells in words."""
    failure = f"{seen.failure.message}\n{seen.failure.detail}" if seen.failure else ""
    return "\n".join((failure, *seen.findings))


def cases() -> list[object]:
    """Returns the cheats, those that nothing catches yet marked with what is missing."""
    made: list[object] = []
    for cheat in CHEATS:
        missing = pytest.mark.xfail(strict=True, reason=cheat.waits_for)
        made.append(pytest.param(cheat, id=cheat.name, marks=[missing] if cheat.waits_for else []))
    return made


@pytest.mark.parametrize("cheat", cases())
def test_a_cheat_does_not_win(
    cheat: FixtureFile, evaluator_for: EvaluatorFor, tmp_path_factory: pytest.TempPathFactory
) -> None:
    evaluator = evaluator_for(cheat.task)
    for _ in range(cheat.runs):
        seen = _seen(cheat, evaluator)
        _skip_without(cheat, seen)
        assert seen.status in cheat.expect, (seen.status, said(seen))
        assert cheat.says in said(seen)
        if seen.status is Status.PASSED:
            _figures_are_true(cheat, seen)
    if cheat.leaves_no:
        assert list(tmp_path_factory.getbasetemp().rglob(cheat.leaves_no)) == []


def _seen(cheat: FixtureFile, evaluator: LocalEvaluator) -> Evaluation:
    """Returns what was seen of a cheat, the next time where it had chances and got away."""
    seen = evaluator.evaluate(candidate_of(cheat.source), cheat.tier, cheat.allowance_s)
    for _ in range(1, cheat.chances):
        if seen.status not in cheat.expect:
            seen = evaluator.evaluate(candidate_of(cheat.source), cheat.tier, cheat.allowance_s)
    return seen


def _skip_without(cheat: FixtureFile, seen: Evaluation) -> None:
    """Skips an attack that this machine has no layer against, which the result then says."""
    assert seen.basis is not None
    if cheat.guarantee and Isolation(seen.basis.isolation).unmet([cheat.guarantee]):
        pytest.skip(f"not offered here: {'; '.join(seen.basis.missing_isolation)}")


def _figures_are_true(cheat: FixtureFile, seen: Evaluation) -> None:
    timing = seen.timings[0]
    assert timing.candidate_ms >= cheat.least_ms, f"{timing.candidate_ms} ms; a call takes {cheat.least_ms} ms"
    assert timing.speedup_low <= cheat.most_speedup, said(seen)
    assert timing.calls >= cheat.least_calls
    assert cheat.label in ("", seen.authorship), seen.kernels


def test_the_known_bypasses_of_kernelbench_are_among_them() -> None:
    assert {c.bypass for c in CHEATS} - {""} == BYPASSES
    assert [c.name for c in CHEATS if c.bypass and "PASSED" in c.expect] == []


def test_both_tiers_look_alike_to_a_candidate(evaluator_for: EvaluatorFor) -> None:
    sniffer = next(c for c in CHEATS if c.path.stem == "71_sniffing")
    evaluator = evaluator_for(sniffer.task)
    told = [said(evaluator.evaluate(candidate_of(sniffer.source), tier, 60)) for tier in ("search", "attest")]
    lines = [next(line for line in text.splitlines() if line.startswith("ValueError: seen:")) for text in told]
    assert lines[0] == lines[1]


def test_a_reference_that_is_not_finite_judges_nobody(evaluator_for: EvaluatorFor) -> None:
    with pytest.raises(TaskError, match="gives NaN"):
        evaluator_for("not_a_number").evaluate(candidate_of(model("return x")), "search", 60)


def test_a_comparison_of_nothing_proves_nothing(evaluator_for: EvaluatorFor) -> None:
    seen = evaluator_for("empty").evaluate(candidate_of(model("return x * 2")), "search", 60)
    assert (seen.status, "nothing was compared" in said(seen)) == (Status.REJECTED, True)


def test_a_candidate_that_fails_halfway_leaves_nothing_for_the_next(evaluator_for: EvaluatorFor) -> None:
    evaluator = evaluator_for("double")
    for trial in range(1, 4):
        wrong = model(f"self.n += 1\nreturn x * 2 if self.n < {trial} else x", "self.n = 0")
        assert evaluator.evaluate(candidate_of(wrong), "search", 60).status is Status.WRONG_VALUE
        assert evaluator.evaluate(candidate_of(model("return x + x")), "search", 60).status is Status.PASSED


def test_all_items_of_the_list_have_a_test() -> None:
    here = Path(__file__).parent
    elsewhere = tomllib.loads((here / "cheats" / "items.toml").read_text())["elsewhere"]
    for place in (place for places in elsewhere.values() for place in places):
        file, _, test = place.partition("::")
        assert f"def {test}(" in (here.parent / file).read_text(), place
    covered = {cheat.item for cheat in CHEATS} | {int(item) for item in elsewhere}
    assert covered == set(range(1, 78))
