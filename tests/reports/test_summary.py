import pytest

from egg.reports.summary import Interval, summarise
from egg.schema.run import RunState
from egg.testing import factories as make


def test_the_winner_is_judged_by_its_final_measurement(finished: RunState) -> None:
    summary = summarise(finished)
    assert summary.over_eager is not None
    assert summary.over_eager.value == pytest.approx(2.87)
    assert summary.candidate_ms == pytest.approx(4.2 / 2.87)


def test_speedup_over_another_rung_is_the_quotient_with_the_widest_interval(finished: RunState) -> None:
    over_best = summarise(finished).over_best
    assert over_best is not None
    assert over_best.value == pytest.approx(2.87 / 1.75)
    assert over_best.low == pytest.approx(2.87 * 0.99 / 1.81)
    assert over_best.high == pytest.approx(2.87 * 1.01 / 1.70)


def test_the_reference_is_exactly_as_fast_as_itself(finished: RunState) -> None:
    reference = finished.attempts[0]
    noisy = reference.evaluation.updated(
        timings=tuple(t.updated(speedup=0.97, speedup_low=0.95) for t in reference.evaluation.timings)
    )
    final = finished.finals[0].updated(candidate_id=reference.candidate.id, evaluation=noisy)
    assert finished.outcome is not None
    outcome = finished.outcome.updated(winner_id=reference.candidate.id, faster=False)
    summary = summarise(finished.updated(finals=(final,), outcome=outcome))
    assert summary.over_eager == Interval(1.0, 1.0, 1.0)
    assert summary.over_best is not None
    assert summary.over_best.value == pytest.approx(1 / 1.75)


def test_the_path_leads_from_the_reference_to_the_winner(finished: RunState) -> None:
    steps = summarise(finished).steps
    assert [s.attempt.plan.index for s in steps] == [0, 1, 3, 6, 7]
    assert steps[0].measured_effect is None
    assert steps[1].measured_effect == pytest.approx(1.42)
    assert steps[2].measured_effect == pytest.approx(2.05 / 1.42)
    assert [[o.plan.index for o in s.others] for s in steps] == [[2], [4], [5], [], [8]]


def test_the_headline_names_the_best_rung(finished: RunState) -> None:
    assert summarise(finished).headline == "2.87× as fast as eager, 1.64× as fast as torch.compile"


def test_the_headline_admits_a_better_rung(finished: RunState) -> None:
    eager, compiled, _ = finished.baselines
    better = finished.updated(baselines=(eager, compiled.updated(speedup_over_eager=4.0, low=3.9, high=4.1)))
    assert summarise(better).headline == "2.87× as fast as eager, but only 0.72× as fast as torch.compile"
    level = finished.updated(baselines=(eager, compiled.updated(speedup_over_eager=2.87, low=2.8, high=2.9)))
    assert summarise(level).headline == "2.87× as fast as eager, level with torch.compile"


def test_a_quotient_without_ends_has_none() -> None:
    assert Interval(3.0, 2.9, 3.1).over(Interval(1.5)) == Interval(2.0)


def test_a_run_without_a_step_claims_nothing(finished: RunState) -> None:
    reference = finished.attempts[0]
    assert finished.outcome is not None
    outcome = finished.outcome.updated(winner_id=reference.candidate.id, faster=False)
    alone = finished.updated(attempts=(reference,), finals=(), outcome=outcome)
    assert summarise(alone).headline == "As it was: no step applies to this task"
    tried = finished.updated(attempts=finished.attempts[:2], finals=(), outcome=outcome)
    assert summarise(tried).headline == "Nothing to gain over eager"
    refused = make.make_evaluation(2.0, tier="attest", timings=(make.make_timing(2.0, no_claim="answers may be kept"),))
    final = make.make_final(candidate_id=finished.attempts[1].candidate.id, evaluation=refused)
    assert summarise(tried.updated(finals=(final,))).headline == "No speedup is claimed"
