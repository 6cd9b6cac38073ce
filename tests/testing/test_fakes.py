"""The fakes keep the Protocols, and the factories make records that survive a round trip."""

import inspect
from collections.abc import Callable

import pytest
from pydantic import TypeAdapter

from egg.errors import UsageError
from egg.schema.base import Record
from egg.schema.evaluation import Status
from egg.schema.run import Event, fold
from egg.testing import factories
from egg.testing.conformance import ArchiveConformance, CodeAgentConformance, PlannerConformance
from egg.testing.fakes import (
    FakeAnalyst,
    FakeAuthor,
    FakeEvaluator,
    FirstOptionPlanner,
    ManualClock,
    MemoryArchive,
    true_speedup,
)

MAKERS = [
    make
    for name, make in inspect.getmembers(factories, inspect.isfunction)
    if name.startswith("make_") and name not in ("make_events", "make_state")
]


class TestMemoryArchive(ArchiveConformance):
    def make_archive(self) -> MemoryArchive:
        self.archive = MemoryArchive()
        return self.archive

    def reopened(self) -> MemoryArchive:
        return MemoryArchive(list(self.archive.events()))


class TestFakeAuthor(CodeAgentConformance):
    def make_agent(self) -> FakeAuthor:
        return FakeAuthor()


class TestFirstOptionPlanner(PlannerConformance):
    def make_planner(self) -> FirstOptionPlanner:
        return FirstOptionPlanner()


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_every_factory_makes_a_record_that_json_gives_back(make: Callable[[], Record]) -> None:
    record = make()
    assert type(record).model_validate_json(record.model_dump_json()) == record


def test_there_is_a_factory_for_every_record_that_rooms_exchange() -> None:
    made = {type(make()).__name__ for make in MAKERS}
    assert made >= {
        *("Task", "Workload", "Device", "Graph", "Analysis", "Principle", "KnobSpec", "Candidate", "Option"),
        *("StagePlan", "Trial", "Timing", "Evaluation", "Baseline", "Config", "Diagnosis", "Attempt", "Outcome"),
        *("RunStarted", "FinalMeasured"),
    }


def test_a_factory_replaces_fields_and_refuses_what_is_invalid() -> None:
    assert factories.make_task(name="other").name == "other"
    with pytest.raises(ValueError, match="no_such_field"):
        factories.make_task(no_such_field=1)
    with pytest.raises(ValueError, match="choose one of"):
        factories.make_candidate(schedule={"rows": 5}, schedule_space={"rows": factories.make_knob()})


def test_the_sample_events_cover_every_kind_and_fold() -> None:
    state = None
    for event in factories.make_events():
        state = fold(state, event)
    assert state is not None
    assert state.outcome == factories.make_outcome()
    kinds = {event.type for event in factories.make_events()}
    schema = TypeAdapter(Event).json_schema()
    assert kinds == set(schema["discriminator"]["mapping"])


def test_a_state_holds_the_attempts_that_it_is_given() -> None:
    attempt = factories.make_attempt()
    state = factories.make_state(attempt, spent_s=7.0)
    assert (state.attempts, state.spent_s) == ((attempt,), 7.0)
    assert state.best() == attempt


def test_the_manual_clock_moves_when_told() -> None:
    clock = ManualClock()
    clock.advance(1.5)
    clock.advance(0.5)
    assert clock() == 2.0


def test_the_evaluator_is_repeatable_moves_its_clock_and_measures_the_tiers_apart() -> None:
    evaluator, again = FakeEvaluator(), FakeEvaluator()
    candidate = factories.make_candidate()
    search, final = (evaluator.evaluate(candidate, tier, 1.0) for tier in ("search", "attest"))
    assert search == again.evaluate(candidate, "search", 1.0)
    assert search.speedup != final.speedup
    assert search.speedup == pytest.approx(true_speedup(candidate), rel=0.01)
    assert evaluator.clock() == pytest.approx(search.wall_s + final.wall_s)
    assert evaluator.evaluated == [(candidate.id, "search"), (candidate.id, "attest")]
    evaluator.close()
    assert evaluator.closed


def test_about_the_asked_share_of_structures_fails_and_the_reference_never() -> None:
    evaluator = FakeEvaluator(failing_share=0.3)
    named = [factories.make_candidate(structure=(str(n),)) for n in range(300)]
    failed = sum(evaluator.evaluate(c, "search", 1.0).status is not Status.PASSED for c in named)
    assert 60 < failed < 120
    assert FakeEvaluator(failing_share=1.0).evaluate(factories.make_candidate(), "search", 1.0).failure is None


def test_the_author_repairs_once_and_refuses_what_it_did_not_offer() -> None:
    author, task, analyses = FakeAuthor(), factories.make_task(), (factories.make_analysis(),)
    reference = author.reference(task, analyses)
    plan = factories.make_plan(option_id="fuse", parent_id=reference.id)
    failed = author.write(task, analyses, reference, plan)
    seen = factories.make_failed_evaluation()
    repaired = author.repair(task, analyses, failed, seen, plan)
    assert repaired is not None
    assert repaired.structure == ("fuse.safe",)
    assert author.repair(task, analyses, repaired, seen, plan) is None
    with pytest.raises(UsageError, match="option 'rows=16' is not offered"):
        author.write(task, analyses, reference, plan.updated(option_id="rows=16"))


def test_the_analyst_gives_one_analysis_a_workload() -> None:
    task = factories.make_task(workloads=(factories.make_workload(), factories.make_workload(name="large")))
    analyses = FakeAnalyst().analyze(task, factories.make_device())
    assert [a.workload for a in analyses] == ["default", "large"]
    assert {a.task_hash for a in analyses} == {task.content_hash}
