"""The small decisions: arms, bandit, sweep, exploring, budget, repairs, finals."""

import pytest

from egg.planning import budget
from egg.planning.arms import arms, beam
from egg.planning.bandit import by_promise
from egg.planning.explore import explores, least_evidence
from egg.planning.finals import finalists, outcome
from egg.planning.gains import steps_since_gain
from egg.planning.parents import structure_options, structure_parents
from egg.planning.repairs import repair_plan
from egg.planning.stages import PATIENCE, structure_is_over
from egg.planning.sweep import most_promising, worth_trying
from egg.planning.tried import Tried
from egg.schema.candidate import Candidate
from egg.schema.evaluation import Evaluation, Status
from egg.schema.run import Attempt, RunState, Usage
from egg.testing.factories import (
    make_attempt,
    make_candidate,
    make_config,
    make_evaluation,
    make_failed_evaluation,
    make_final,
    make_knob,
    make_option,
    make_plan,
    make_run_started,
    make_state,
    make_timing,
)

REFERENCE = make_attempt(candidate=make_candidate(language="torch", source="the task"))
SPACE = {"rows": make_knob()}


def structured(name: str, speedup: float | None, index: int, verdict: str = "kept", **changes: object) -> Attempt:
    candidate = make_candidate(source=name, structure=(name,), schedule={"rows": 8}, schedule_space=SPACE)
    plan = make_plan(index=index, parent_id=REFERENCE.candidate.id, option_id=name, principle_ids=(name,))
    return make_attempt(candidate=candidate, plan=plan, evaluation=seen(speedup), verdict=verdict, **changes)


def tuned(parent: Candidate, rows: int, speedup: float, index: int, verdict: str = "rejected") -> Attempt:
    candidate = parent.updated(schedule={"rows": rows}, stage="tiling", parent_ids=(parent.id,))
    plan = make_plan(index=index, stage="tiling", parent_id=parent.id, option_id=f"rows={rows}")
    return make_attempt(candidate=candidate, plan=plan, evaluation=seen(speedup), verdict=verdict)


def seen(speedup: float | None) -> Evaluation:
    return make_failed_evaluation() if speedup is None else make_evaluation(speedup)


def with_config(state: RunState, **changes: object) -> RunState:
    return state.updated(started=make_run_started(config=make_config(**changes)))


A, B, C = structured("a", 1.5, 1, "accepted"), structured("b", 1.4, 2), structured("c", 1.1, 3, "rejected")


def test_arms_are_the_passed_structures_without_the_reference_fastest_first() -> None:
    state = make_state(REFERENCE, C, B, A, structured("d", None, 4, "failed"))
    assert [arm.structure for arm in arms(state)] == [("a",), ("b",), ("c",)]
    assert [arm.structure for arm in beam(state)] == [("a",), ("b",)]
    assert [arm.structure for arm in beam(with_config(state, beam=1))] == [("a",)]


def test_the_head_of_an_arm_is_its_last_gain_and_not_a_lucky_measurement() -> None:
    lucky = tuned(A.candidate, 16, 1.52, 4)
    gain = tuned(A.candidate, 32, 1.8, 5, "accepted")
    assert arms(make_state(REFERENCE, A, lucky))[0].head == A
    assert arms(make_state(REFERENCE, A, lucky, gain))[0].head == gain


def test_the_next_structure_starts_from_the_best_then_from_the_beam_then_from_the_reference() -> None:
    assert structure_parents(make_state(REFERENCE)) == (REFERENCE.candidate,)
    parents = structure_parents(make_state(REFERENCE, A, B, C))
    assert parents == (A.candidate, B.candidate, REFERENCE.candidate)


def test_from_elsewhere_only_steps_that_were_never_taken_are_left() -> None:
    failed = structured("d", None, 4, "failed")
    state = make_state(REFERENCE, A, B, failed)
    options = [make_option(id=i) for i in ("b", "d", "e")] + [make_option(id="rows=16", stage="tiling")]
    assert [o.id for o in structure_options(state, A.candidate, options)] == ["b", "e"]
    assert [o.id for o in structure_options(state, REFERENCE.candidate, options)] == ["e"]


def test_the_bandit_lets_a_structure_that_tunes_better_overtake() -> None:
    state = make_state(REFERENCE, A, B)
    assert [arm.structure[0] for arm in by_promise(beam(state))] == ["a", "b"]
    stuck = [tuned(A.candidate, rows, 1.4, 4 + rows) for rows in (16, 32)]
    assert [arm.structure[0] for arm in by_promise(beam(make_state(REFERENCE, A, B, *stuck)))] == ["b", "a"]
    overtakes = tuned(B.candidate, 16, 2.0, 9, "accepted")
    assert beam(make_state(REFERENCE, A, B, *stuck, overtakes))[0].head == overtakes


def test_the_bandit_leaves_a_hopeless_structure_alone() -> None:
    hopeless = structured("h", 0.2, 3)
    stuck = [tuned(A.candidate, rows, 1.4, 4 + rows) for rows in (16, 32)]
    assert by_promise(arms(make_state(REFERENCE, A, hopeless, *stuck)))[0].structure == ("a",)


def test_the_sweep_keeps_its_direction_while_that_pays() -> None:
    options = [make_option(id=i, stage="tiling", predicted_effect=e) for i, e in (("rows=32", 1.01), ("cols=4", 1.2))]
    gain, loss = tuned(A.candidate, 16, 1.8, 4, "accepted"), tuned(A.candidate, 16, 1.3, 4)
    assert most_promising(options, [gain]) == options[0]
    assert most_promising(options, [loss]) == options[1]
    assert most_promising(options, []) == options[1]
    assert most_promising([], [gain]) is None


def test_what_brought_nothing_counts_for_less_and_the_order_decides_ties() -> None:
    options = [make_option(id=i, stage="tiling", predicted_effect=1.1) for i in ("rows=32", "cols=4")]
    assert most_promising(options, []) == options[0]
    assert most_promising(options, [tuned(A.candidate, 16, 1.3, 4)]) == options[1]


def test_only_what_promises_enough_is_worth_trying() -> None:
    options = [make_option(id=str(e), predicted_effect=e) for e in (0.5, 0.96, 0.97, 2.0)]
    assert [o.predicted_effect for o in worth_trying(options)] == [0.97, 2.0]


def test_the_explore_share_is_met_exactly_and_spares_the_reference() -> None:
    for seed in range(10):
        hits = [i for i in range(1, 101) if explores(make_config(seed=seed, explore_share=0.1), i)]
        assert len(hits) == 10
    assert not any(explores(make_config(explore_share=0.0), i) for i in range(100))
    assert not explores(make_config(explore_share=1.0), 0)


def test_exploring_takes_the_option_with_the_least_evidence_whatever_it_promises() -> None:
    options = [make_option(id=p, principle_id=p, predicted_effect=e) for p, e in (("a", 2.0), ("b", 1.5), ("x", 0.5))]
    assert least_evidence(options, (A, B), seed=0) == options[2]
    drawn = {least_evidence(options, (), seed) for seed in range(30)}
    assert drawn == set(options)
    assert least_evidence(options, (), 3) == least_evidence(options, (), 3)
    assert least_evidence([], (), 0) is None


def test_a_step_is_known_by_its_name_its_point_or_its_set_of_moves() -> None:
    tiled = tuned(A.candidate, 16, 1.8, 4, "accepted")
    both = make_candidate(source="ab", structure=("b", "a"))
    tried = Tried.of((REFERENCE, A, tiled, make_attempt(candidate=both)))
    rows = [make_option(id=f"rows={n}", stage="tiling", move="rows") for n in (8, 32)]
    assert tried.new(tiled.candidate, rows) == rows[1:]
    moves = [make_option(id=m, move=m) for m in ("a", "b", "c")]
    assert tried.new(REFERENCE.candidate, moves) == moves[1:]
    assert tried.new(A.candidate, moves[1:]) == moves[2:]


def test_a_failed_step_is_known_even_when_its_repair_became_something_else() -> None:
    failed = structured("d", None, 1, "failed")
    repaired = structured("d.safe", 1.2, 2, "accepted", repaired_from=failed.candidate.id)
    repaired = repaired.updated(plan=failed.plan.updated(index=2))
    assert Tried.of((REFERENCE, failed, repaired)).new(REFERENCE.candidate, [make_option(id="d")]) == []


def test_the_structure_stage_ends_without_gain_or_when_tuning_began() -> None:
    losses = [structured(f"x{n}", 1.0, n, "rejected") for n in range(PATIENCE["structure"])]
    assert not structure_is_over(make_state(REFERENCE, *losses[:-1]))
    assert structure_is_over(make_state(REFERENCE, *losses))
    assert not structure_is_over(make_state(REFERENCE, *losses[:-1], A))
    assert structure_is_over(make_state(REFERENCE, A, tuned(A.candidate, 16, 1.4, 2)))


def test_a_step_and_its_repairs_count_once() -> None:
    failed = structured("d", None, 1, "failed")
    again = structured("e", None, 2, "failed", repaired_from=failed.candidate.id)
    assert steps_since_gain([A, failed, again]) == 1
    assert steps_since_gain([failed, A]) == 0
    assert steps_since_gain([]) == 0


def test_the_budget_keeps_seconds_for_the_finals() -> None:
    state = with_config(make_state(REFERENCE, A, B, C), budget_s=30.0)
    assert budget.reserve_s(state) == pytest.approx(2 * 3.0 * 1.0)
    assert budget.left_s(state) == pytest.approx(30 - 6 - 4)
    assert not budget.is_spent(with_config(make_state(REFERENCE, *[A] * 16), budget_s=30.0))
    assert budget.is_spent(with_config(make_state(REFERENCE, *[A] * 17), budget_s=30.0))
    assert budget.reserve_s(with_config(state, budget_s=6.0)) == pytest.approx(3.0)


def test_seconds_before_the_search_do_not_starve_it() -> None:
    state = with_config(make_state(REFERENCE, A, spent_s=22.0), budget_s=26.0)
    assert budget.reserve_s(state) == pytest.approx(0.5 * (26 - 20))
    assert not budget.is_spent(state)
    assert not budget.is_spent(with_config(make_state(REFERENCE, spent_s=99.0), budget_s=26.0))
    assert budget.is_spent(with_config(make_state(REFERENCE, A, spent_s=99.0), budget_s=26.0))


def test_without_a_budget_nothing_is_ever_spent() -> None:
    state = make_state(REFERENCE, A, spent_s=1e9)
    assert (budget.left_s(state), budget.is_spent(state)) == (None, False)
    assert budget.allowance_s(state) == budget.ALLOWANCE_MAX_S


def test_the_allowance_is_what_is_left_within_its_bounds() -> None:
    state = with_config(make_state(REFERENCE), budget_s=60.0)
    assert budget.allowance_s(state) == pytest.approx(60 - 3 - 1)
    assert budget.allowance_s(state.updated(spent_s=59.0)) == budget.ALLOWANCE_MIN_S
    assert budget.allowance_s(with_config(state, budget_s=1e4)) == budget.ALLOWANCE_MAX_S


def test_structures_leave_seconds_and_attempts_to_tune_with() -> None:
    slow = structured("s", 1.2, 1, "accepted", usage=Usage(wall_s=25.0))
    assert budget.structure_share_is_spent(with_config(make_state(REFERENCE, slow), budget_s=40.0))
    assert not budget.structure_share_is_spent(with_config(make_state(REFERENCE, A), budget_s=40.0))
    assert budget.structure_share_is_spent(with_config(make_state(REFERENCE, A, B, C), budget_attempts=6))
    assert not budget.structure_share_is_spent(with_config(make_state(REFERENCE, A, B), budget_attempts=6))


def test_a_failure_is_repaired_twice_at_most() -> None:
    failed = structured("d", None, 1, "failed")
    first = structured("d1", None, 2, "failed", repaired_from=failed.candidate.id)
    second = structured("d2", None, 3, "failed", repaired_from=first.candidate.id)
    plan = repair_plan(make_state(REFERENCE, failed))
    assert plan == failed.plan.updated(index=2, allowance_s=budget.ALLOWANCE_MAX_S)
    assert repair_plan(make_state(REFERENCE, failed, first)) is not None
    assert repair_plan(make_state(REFERENCE, failed, first, second)) is None


def test_what_passed_the_reference_a_repetition_and_a_spent_budget_are_not_repaired() -> None:
    failed = structured("d", None, 1, "failed")
    repeated = failed.updated(plan=failed.plan.updated(index=2))
    assert repair_plan(make_state()) is None
    assert repair_plan(make_state(REFERENCE, A)) is None
    assert repair_plan(make_state(make_attempt(evaluation=make_failed_evaluation(), verdict="failed"))) is None
    assert repair_plan(make_state(REFERENCE, failed, repeated)) is None
    assert repair_plan(with_config(make_state(REFERENCE, failed), budget_attempts=2)) is None


def test_finalists_are_the_fastest_near_the_best_that_beat_the_reference_and_the_reference() -> None:
    slow, best = structured("s", 0.9, 4, "kept"), structured("f", 1.6, 5, "accepted")
    names = [best.candidate.id, A.candidate.id, B.candidate.id, REFERENCE.candidate.id]
    assert finalists(make_state(REFERENCE, A, B, C, slow, best, best, *[C] * 3)) == tuple(names)
    far = structured("far", 3.0, 6, "accepted")
    assert finalists(make_state(REFERENCE, A, B, *[far] * 7)) == (far.candidate.id, REFERENCE.candidate.id)
    assert finalists(make_state(REFERENCE, slow)) == (REFERENCE.candidate.id,)


@pytest.mark.parametrize(("steps", "most"), [(1, 1), (3, 1), (6, 2), (9, 3), (40, 3)])
def test_a_short_search_has_few_finalists(steps: int, most: int) -> None:
    near = [structured(f"n{i}", 1.5, i) for i in range(steps)]
    assert len(finalists(make_state(REFERENCE, *near))) == most + 1


def measured(attempt: Attempt, speedup: float | None, spread: float = 0.01) -> object:
    evaluation = make_failed_evaluation(Status.WRONG_VALUE) if speedup is None else make_evaluation(speedup, spread)
    return make_final(candidate_id=attempt.candidate.id, evaluation=evaluation.updated(tier="attest"))


def test_the_fastest_final_wins_and_the_sentence_says_by_how_much() -> None:
    finals = (measured(A, 1.4), measured(B, 1.6), measured(REFERENCE, 1.0))
    result = outcome(make_state(REFERENCE, A, B, finals=finals), interrupted=False)
    assert (result.winner_id, result.verified, result.faster) == (B.candidate.id, True, True)
    assert result.summary == "1.60x over eager (1.58 to 1.62)"
    assert result.stopped_by == "done"


def test_a_final_failure_does_not_win() -> None:
    finals = (measured(A, None), measured(B, 1.2), measured(REFERENCE, 1.0))
    assert outcome(make_state(REFERENCE, A, B, finals=finals), False).winner_id == B.candidate.id


def test_within_the_noise_of_the_reference_there_is_nothing_to_gain() -> None:
    finals = (measured(A, 1.15), measured(REFERENCE, 1.0, spread=0.2))
    result = outcome(make_state(REFERENCE, A, finals=finals), False)
    assert (result.winner_id, result.verified, result.faster) == (REFERENCE.candidate.id, True, False)
    assert result.summary == "nothing to gain: none of 1 attempts was reliably faster than eager"


def test_figures_that_claim_nothing_do_not_win_and_the_sentence_says_why() -> None:
    refused = make_evaluation(tier="attest", timings=(make_timing(3.0, no_claim="its inputs can't change"),))
    final = make_final(candidate_id=A.candidate.id, evaluation=refused)
    result = outcome(make_state(REFERENCE, A, finals=(final, measured(REFERENCE, 1.0))), False)
    assert (result.winner_id, result.verified, result.faster) == (REFERENCE.candidate.id, True, False)
    assert result.summary == "no speedup is claimed: its inputs can't change"


def test_a_task_that_fails_is_not_verified() -> None:
    failed = make_attempt(candidate=REFERENCE.candidate, evaluation=make_failed_evaluation(), verdict="failed")
    result = outcome(make_state(failed, finals=(measured(REFERENCE, None),)), True)
    assert (result.verified, result.faster, result.stopped_by) == (False, False, "interrupted")
    assert result.summary == "the task itself did not pass: WRONG_VALUE in check: the outputs differ"
