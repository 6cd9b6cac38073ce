"""The loop with fakes: order, faults, interruptions, and a resume from every point."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egg import engine
from egg.errors import ArchiveError, SandboxError, UsageError
from egg.planning import RulePlanner
from egg.protocols import Machine
from egg.schema.base import Record
from egg.schema.candidate import Candidate
from egg.schema.evaluation import Status
from egg.schema.run import AttemptFinished, RunStarted, RunState
from egg.testing.factories import make_config, make_run_started
from egg.testing.fakes import (
    FakeAuthor,
    FakeEvaluator,
    FirstOptionPlanner,
    MemoryArchive,
    RecordingListener,
    fake_machine,
)


def started(**config: object) -> RunStarted:
    return make_run_started(config=make_config(ladder=("eager", "torch.compile"), **config))


def failing(calls: set[int], error: BaseException) -> Callable[[], None]:
    """Returns a pause that raises at these calls, counted from 1."""
    count = iter(range(1, 10_000))

    def pause() -> None:
        if next(count) in calls:
            raise error

    return pause


def machine_with(archive: MemoryArchive, **evaluator: object) -> Machine:
    return fake_machine(RulePlanner(), archive, FakeEvaluator(**evaluator))


def test_the_events_come_in_order_and_fold_to_the_state() -> None:
    archive = MemoryArchive()
    state = engine.run(fake_machine(FirstOptionPlanner(), archive), started())
    kinds = [event.type for event in archive.events()]
    assert list(dict.fromkeys(kinds)) == [
        "run_started",
        "analyzed",
        "baseline_measured",
        "attempt_finished",
        "final_measured",
        "run_finished",
    ]
    assert kinds == sorted(kinds, key=list(dict.fromkeys(kinds)).index)
    assert [b.name for b in state.baselines] == ["eager", "torch.compile"]
    assert state.outcome is not None
    assert engine.resume(fake_machine(FirstOptionPlanner(), archive)) == state


def test_attempt_0_is_the_reference_itself() -> None:
    state = engine.run(fake_machine(FirstOptionPlanner(), MemoryArchive()), started())
    assert state.attempts[0].candidate == FakeAuthor().reference(state.started.task, state.analyses)
    assert state.attempts[0].verdict == "accepted"
    assert state.finals[-1].candidate_id == state.attempts[0].candidate.id


def test_the_time_of_every_step_is_counted_by_the_clock_of_the_machine() -> None:
    machine = fake_machine(FirstOptionPlanner(), MemoryArchive())
    state = engine.run(machine, started())
    assert state.spent_s == pytest.approx(machine.clock())
    assert all(a.usage.wall_s == pytest.approx(a.evaluation.wall_s) for a in state.attempts)


def test_listeners_hear_every_plan_and_every_event_after_it_was_stored() -> None:
    archive, listener = MemoryArchive(), RecordingListener()
    machine = replace(fake_machine(FirstOptionPlanner(), archive), listeners=(listener,))
    state = engine.run(machine, started())
    assert listener.events == archive.stored
    assert listener.plans == [a.plan for a in state.attempts]


def test_a_failed_attempt_is_repaired_at_most_twice_in_a_row() -> None:
    archive = MemoryArchive()
    state = engine.run(machine_with(archive, failing_share=0.6), started())
    repairs = [a for a in state.attempts if a.repaired_from]
    assert repairs
    for before, attempt in zip(state.attempts, state.attempts[1:], strict=False):
        if attempt.repaired_from:
            assert before.verdict == "failed"
            assert attempt.repaired_from == before.candidate.id
            assert attempt.plan.option_id == before.plan.option_id
    assert [a.plan.index for a in state.attempts] == list(range(len(state.attempts)))


def test_when_everything_fails_the_reference_wins() -> None:
    state = engine.run(machine_with(MemoryArchive(), failing_share=1.1), started())
    assert state.outcome is not None
    assert (state.outcome.winner_id, state.outcome.verified) == (state.attempts[0].candidate.id, True)
    assert state.outcome.summary.startswith("nothing to gain: none of")
    assert len(state.attempts) > 1


class RepeatingAuthor(FakeAuthor):
    """Writes the same program for every structure step."""

    def write(self, task, analyses, parent, plan) -> Candidate:  # type: ignore[no-untyped-def]
        first = plan.updated(option_id="fuse")
        return super().write(task, analyses, self.reference(task, analyses), first)


def test_a_program_that_was_tried_is_recorded_but_not_run_again() -> None:
    evaluator = FakeEvaluator()
    author = RepeatingAuthor()
    machine = replace(fake_machine(FirstOptionPlanner(4), MemoryArchive(), evaluator), code=author)
    state = engine.run(machine, started())
    assert len(state.attempts) == 4
    assert Counter(tier for _, tier in evaluator.evaluated)["search"] == 2
    for attempt in state.attempts[2:]:
        assert attempt.evaluation == state.attempts[1].evaluation
        assert attempt.verdict == "rejected"
        assert attempt.reason == "the same program as attempt 1, so it was not run again"


def test_a_lost_worker_is_replaced_without_a_trace_in_the_result() -> None:
    undisturbed = engine.run(machine_with(MemoryArchive()), started())
    lost = failing({1, 2, 5, 9, 10}, SandboxError("the worker was lost"))
    state = engine.run(machine_with(MemoryArchive(), pause=lost), started())
    assert state == undisturbed


def test_a_worker_lost_three_times_in_one_step_ends_the_run_and_resume_goes_on() -> None:
    undisturbed = engine.run(machine_with(MemoryArchive()), started())
    archive = MemoryArchive()
    lost = failing({6, 7, 8}, SandboxError("the worker was lost"))
    with pytest.raises(SandboxError, match="the worker was lost"):
        engine.run(machine_with(archive, pause=lost), started())
    assert plain(engine.resume(machine_with(archive))) == plain(undisturbed)


def test_an_interrupt_in_the_search_goes_on_with_the_finals_of_what_is_there() -> None:
    archive = MemoryArchive()
    state = engine.run(machine_with(archive, pause=failing({6}, KeyboardInterrupt())), started())
    assert state.outcome is not None
    assert state.outcome.stopped_by == "interrupted"
    assert len(state.attempts) == 3
    assert len(state.finals) == 2
    assert engine.resume(machine_with(archive)) == state


@pytest.mark.parametrize("calls", [{1}, {3}, {6, 7}, {6, 8}], ids=["baseline", "attempt 0", "twice", "in the finals"])
def test_any_other_interrupt_leaves_a_log_to_go_on_from(calls: set[int]) -> None:
    archive = MemoryArchive()
    with pytest.raises(KeyboardInterrupt):
        engine.run(machine_with(archive, pause=failing(calls, KeyboardInterrupt())), started())
    state = engine.resume(machine_with(archive))
    assert state.outcome is not None
    assert state.outcome.verified
    assert_nothing_doubled(state)


def test_an_archive_with_a_run_takes_no_second_one() -> None:
    archive = MemoryArchive()
    engine.run(machine_with(archive), started())
    with pytest.raises(UsageError, match="run-1 already holds a run; resume it"):
        engine.run(machine_with(archive), started())


def test_an_empty_archive_cannot_be_resumed() -> None:
    with pytest.raises(ArchiveError, match="holds no run"):
        engine.resume(machine_with(MemoryArchive()))


def assert_nothing_doubled(state: RunState) -> None:
    assert [a.plan.index for a in state.attempts] == list(range(len(state.attempts)))
    assert len({a.candidate.id for a in state.attempts}) == len(state.attempts)
    assert len({f.candidate_id for f in state.finals}) == len(state.finals)
    assert len({b.name for b in state.baselines}) == len(state.baselines)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 5),
    budget_s=st.sampled_from([None, 15.0, 30.0]),
    failing_share=st.sampled_from([0.0, 0.4, 0.8]),
    cuts=st.lists(st.floats(0, 1), min_size=1, max_size=3),
)
def test_any_prefix_of_the_log_resumes_to_the_same_state(
    seed: int, budget_s: float | None, failing_share: float, cuts: list[float]
) -> None:
    whole = MemoryArchive()
    undisturbed = engine.run(
        machine_with(whole, failing_share=failing_share), started(seed=seed, budget_s=budget_s, explore_share=0.3)
    )
    for cut in cuts:
        prefix = MemoryArchive(whole.stored[: 1 + round(cut * (len(whole.stored) - 1))])
        done = {e.attempt.candidate.id for e in prefix.stored if isinstance(e, AttemptFinished)}
        evaluator = FakeEvaluator(failing_share=failing_share)
        resumed = engine.resume(fake_machine(RulePlanner(), prefix, evaluator))
        assert [plain(e) for e in prefix.stored] == [plain(e) for e in whole.stored]
        assert plain(resumed) == plain(undisturbed)
        assert not {name for name, tier in evaluator.evaluated if tier == "search"} & done
        assert_nothing_doubled(resumed)


def plain(record: Record) -> object:
    """Returns the fields with rounded numbers: the clock starts again on resume, so seconds differ in the last bit."""
    return rounded(record.model_dump(mode="json"))


def rounded(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def test_statuses_of_the_fakes_reach_both_ends() -> None:
    state = engine.run(machine_with(MemoryArchive(), failing_share=0.5), started())
    assert {a.evaluation.status for a in state.attempts} == {Status.PASSED, Status.WRONG_VALUE}
