"""The planner by rule keeps what every planner promises, and finds what the fake space hides."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest

from egg import engine
from egg.planning import RulePlanner
from egg.planning.stages import OBJECTIVES
from egg.schema.analysis import Analysis
from egg.schema.candidate import Candidate
from egg.schema.evaluation import Evaluation, Status, Tier
from egg.schema.plan import Option
from egg.schema.principle import STAGES
from egg.schema.run import Attempt, RunState
from egg.schema.task import Task
from egg.testing.conformance import PlannerConformance
from egg.testing.factories import (
    make_analysis,
    make_attempt,
    make_config,
    make_evaluation,
    make_failed_evaluation,
    make_option,
    make_principle,
    make_run_started,
    make_state,
)
from egg.testing.fakes import KNOBS, MOVES, FakeAuthor, FakeEvaluator, MemoryArchive, fake_machine, true_speedup


class TestRulePlanner(PlannerConformance):
    def make_planner(self) -> RulePlanner:
        return RulePlanner()


def finished(seed: int = 0, **config: object) -> RunState:
    started = make_run_started(config=make_config(seed=seed, **config))
    return engine.run(fake_machine(RulePlanner(), MemoryArchive()), started)


def test_the_stages_come_in_order() -> None:
    state = finished(explore_share=0.0, beam=1)
    assert tuple(dict.fromkeys(a.plan.stage for a in state.attempts)) == STAGES
    structure = [a.plan.stage == "structure" for a in state.attempts]
    assert structure == sorted(structure, reverse=True)


def test_every_plan_carries_the_objective_of_its_stage() -> None:
    for attempt in finished().attempts[1:]:
        assert attempt.plan.objective == OBJECTIVES[attempt.plan.stage]


def test_the_winner_is_near_the_best_point_of_the_space() -> None:
    state = finished()
    author, evaluator = FakeAuthor(), FakeEvaluator()
    task, analyses = state.started.task, state.analyses
    best = 1.0
    for length in range(1, len(MOVES) + 1):
        for moves in itertools.permutations(MOVES, length):
            parent = author.reference(task, analyses)
            structured = author._structured(moves, {k: s.choices[0] for k, s in KNOBS.items()}, parent.id)
            for values in itertools.product(*(s.choices for s in KNOBS.values())):
                point = structured.updated(schedule=dict(zip(KNOBS, values, strict=True)))
                if evaluator.evaluate(point, "search", 1.0).status is Status.PASSED:
                    best = max(best, true_speedup(point))
    assert state.outcome is not None
    assert state.outcome.faster
    assert true_speedup(state.candidate(state.outcome.winner_id)) > 0.85 * best


class ExclusiveAuthor(FakeAuthor):
    """Offers either `fuse` or `fold`, from the reference alone."""

    def options(self, task: Task, analyses: Sequence[Analysis], parent: Candidate) -> tuple[Option, ...]:
        offered = super().options(task, analyses, parent)
        return tuple(
            o for o in offered if o.stage != "structure" or (not parent.structure and o.id in ("fuse", "fold"))
        )


class TunableEvaluator(FakeEvaluator):
    """`fuse` gives 1.5 and can't be tuned; `fold` gives 1.4, and more with every step of `rows`."""

    def evaluate(self, candidate: Candidate, tier: Tier, allowance_s: float) -> Evaluation:
        speedup = {(): 1.0, ("fuse",): 1.5, ("fold",): 1.4}[candidate.structure]
        if candidate.structure == ("fold",):
            speedup *= 1 + int(candidate.schedule["rows"]) / 64
        return make_evaluation(speedup, candidate_id=candidate.id, tier=tier)


def test_a_structure_that_tunes_better_overtakes() -> None:
    author = ExclusiveAuthor()
    machine = fake_machine(RulePlanner(), MemoryArchive(), TunableEvaluator())
    machine = replace(machine, code=author)
    state = engine.run(machine, make_run_started(config=make_config(explore_share=0.0)))
    assert state.outcome is not None
    winner = state.candidate(state.outcome.winner_id)
    assert (winner.structure, winner.schedule["rows"]) == (("fold",), 64)


def analyzed(*attempts: Attempt) -> RunState:
    return make_state(*attempts, analyses=(make_analysis(),))


def test_hypotheses_speak_the_words_of_the_principles() -> None:
    principle = make_principle(id="fuse", title="Fuse the chain", expects="bytes down")
    planner = RulePlanner(lambda _: [principle], language="triton")
    plan = planner.next(analyzed(make_attempt()), lambda _: [make_option(principle_id="fuse")])
    assert plan is not None
    assert plan.hypothesis == "Fuse the chain; expected: bytes down"
    assert (plan.principle_ids, plan.language, plan.predicted_effect) == (("fuse",), "triton", 1.3)


def test_every_principle_that_lists_the_move_is_named_its_own_first() -> None:
    own, mine = make_principle(id="fuse"), make_principle(id="mine", moves=("fuse.rows",))
    planner = RulePlanner(lambda _: [mine, own])
    plan = planner.next(analyzed(make_attempt()), lambda _: [make_option(principle_id="fuse", move="fuse.rows")])
    assert plan is not None
    assert plan.principle_ids == ("fuse", "mine")


def test_a_step_that_no_principle_speaks_for_is_taken_first_of_all_or_when_exploring() -> None:
    planner = RulePlanner(lambda _: [make_principle(id="other", moves=("elsewhere",))])
    first = planner.next(analyzed(make_attempt()), lambda _: [make_option(id="only", principle_id="fuse")])
    assert first is not None
    assert (first.explores, first.option_id) == (True, "only")
    state = analyzed(make_attempt(), make_attempt(plan=first, verdict="rejected"))
    assert planner.next(state, lambda _: [make_option(principle_id="fuse")]) is None
    exploring = make_run_started(config=make_config(explore_share=1.0))
    plan = planner.next(state.updated(started=exploring), lambda _: [make_option(principle_id="fuse")])
    assert plan is not None
    assert (plan.explores, plan.principle_ids) == (True, ("fuse",))


def test_principles_are_matched_against_the_facts_of_the_task() -> None:
    principle = make_principle(id="fuse")
    planner = RulePlanner(lambda facts: [principle] if facts["bound"] == "memory" else [])
    options = [make_option(principle_id="fuse")]
    for bound, matched in (("memory", True), ("compute", False)):
        plan = planner.next(
            make_state(make_attempt(), analyses=(make_analysis(facts={"bound": bound}),)), lambda _: options
        )
        assert plan is not None
        assert plan.explores is not matched


def test_without_principles_the_option_speaks_for_itself() -> None:
    plan = RulePlanner().next(make_state(make_attempt()), lambda _: [make_option(title="fuse the chain")])
    assert plan is not None
    assert plan.hypothesis == "fuse the chain"


def test_a_reference_that_fails_ends_the_search() -> None:
    failed = make_attempt(evaluation=make_failed_evaluation(Status.TIMEOUT), verdict="failed")
    assert RulePlanner().next(make_state(failed), lambda _: [make_option()]) is None


def test_a_step_that_promises_a_loss_is_taken_first_of_all_or_when_exploring() -> None:
    first = make_state(make_attempt())
    loss = [make_option(predicted_effect=0.9)]
    plan = RulePlanner().next(first, lambda _: loss)
    assert plan is not None
    assert not plan.explores
    later = make_state(make_attempt(), make_attempt(plan=plan, verdict="rejected"))
    others = [make_option(id="other", predicted_effect=0.9)]
    assert RulePlanner().next(later, lambda _: others) is None
    exploring = make_run_started(config=make_config(explore_share=1.0))
    plan = RulePlanner().next(later.updated(started=exploring), lambda _: others)
    assert plan is not None
    assert plan.explores


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_the_number_of_attempts_is_held(attempts: int) -> None:
    state = finished(budget_attempts=attempts)
    assert len(state.attempts) == attempts
    assert state.outcome is not None
    assert state.outcome.stopped_by == "budget"


@pytest.mark.parametrize("budget_s", [10.0, 20.0, 40.0])
def test_the_seconds_are_held_with_the_finals_inside(budget_s: float) -> None:
    state = finished(budget_s=budget_s)
    assert state.spent_s <= budget_s * 1.1
    assert len(state.finals) >= 2
    assert state.outcome is not None
    assert state.outcome.stopped_by == ("budget" if budget_s < 25 else "done")


def test_a_share_of_the_attempts_explores_and_the_seed_moves_it() -> None:
    def exploring(seed: int) -> list[int]:
        return [a.plan.index for a in finished(seed, explore_share=0.2).attempts if a.plan.explores]

    assert exploring(0) != exploring(1)
    assert all(index % 5 == 4 for index in exploring(0))
    assert len(exploring(0)) >= 2
