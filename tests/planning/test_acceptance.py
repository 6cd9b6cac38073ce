"""A gain is accepted when the noise can't explain it."""

import pytest

from egg.planning.acceptance import NOISE_MIN, beats, judge, noise_floor, search_noise
from egg.schema.evaluation import Status
from egg.testing.factories import (
    make_attempt,
    make_candidate,
    make_evaluation,
    make_failed_evaluation,
    make_plan,
    make_state,
)

REFERENCE = make_attempt(candidate=make_candidate(language="torch"))
FUSED = make_attempt(
    candidate=make_candidate(source="fused", structure=("fuse",)),
    plan=make_plan(index=1, parent_id=REFERENCE.candidate.id, option_id="fuse"),
    evaluation=make_evaluation(1.5),
)
FOLDED = make_attempt(
    candidate=make_candidate(source="folded", structure=("fold",)),
    plan=make_plan(index=2, parent_id=REFERENCE.candidate.id, option_id="fold"),
    evaluation=make_evaluation(1.2),
    verdict="kept",
)
STEP = make_plan(index=3, parent_id=REFERENCE.candidate.id, option_id="merge")


@pytest.mark.parametrize(
    ("speedup", "spread", "better"),
    [(1.6, 0.01, True), (1.52, 0.01, True), (1.51, 0.01, False), (1.5, 0.01, False), (1.6, 0.1, False)],
)
def test_beats_needs_more_than_the_noise_and_a_higher_low_end(speedup: float, spread: float, better: bool) -> None:
    assert beats(make_evaluation(speedup, spread), make_evaluation(1.5), noise=0.01) is better


def test_a_failure_beats_nothing_and_anything_beats_a_failure() -> None:
    assert not beats(make_failed_evaluation(), make_evaluation(0.1), 0.01)
    assert beats(make_evaluation(0.1), make_failed_evaluation(), 0.01)


def test_the_noise_floor_is_what_the_reference_is_off_itself() -> None:
    assert noise_floor(make_evaluation(1.0, spread=0.04)) == pytest.approx(0.04)
    assert noise_floor(make_evaluation(0.95, spread=0.0)) == pytest.approx(0.05)
    assert noise_floor(make_evaluation(1.0, spread=0.0)) == NOISE_MIN
    assert noise_floor(None) == NOISE_MIN


def test_the_search_takes_its_noise_from_attempt_0() -> None:
    noisy = make_attempt(evaluation=make_evaluation(1.0, spread=0.06))
    assert search_noise(make_state(noisy)) == pytest.approx(0.06)
    assert search_noise(make_state(make_attempt(evaluation=make_evaluation(1.0, spread=0.5)))) == 0.1


def test_a_failure_is_judged_with_its_witness() -> None:
    verdict, reason = judge(make_state(REFERENCE), STEP, make_failed_evaluation(Status.WRONG_VALUE))
    assert (verdict, reason) == ("failed", "WRONG_VALUE in check: the outputs differ")


def test_a_convincing_gain_is_accepted() -> None:
    verdict, reason = judge(make_state(REFERENCE, FUSED), STEP, make_evaluation(1.7))
    assert (verdict, reason) == ("accepted", "1.70x over the reference, the best so far was 1.50x")


def test_a_tie_keeps_the_earlier_one() -> None:
    assert judge(make_state(REFERENCE, FUSED, FOLDED), STEP, make_evaluation(1.19))[0] == "rejected"


def test_a_second_structure_is_kept_while_the_beam_has_room() -> None:
    assert judge(make_state(REFERENCE, FUSED), STEP, make_evaluation(1.1))[0] == "kept"
    assert judge(make_state(REFERENCE, FUSED, FOLDED), STEP, make_evaluation(1.1))[0] == "rejected"
    assert judge(make_state(REFERENCE, FUSED, FOLDED), STEP, make_evaluation(1.3))[0] == "kept"


def test_a_tuned_second_structure_is_kept_when_it_improves_itself() -> None:
    tuned = make_plan(index=3, stage="tiling", parent_id=FOLDED.candidate.id, option_id="rows=16")
    state = make_state(REFERENCE, FUSED, FOLDED)
    assert judge(state, tuned, make_evaluation(1.3))[0] == "kept"
    assert judge(state, tuned, make_evaluation(1.2))[0] == "rejected"
    assert judge(state, tuned, make_evaluation(1.6))[0] == "accepted"
