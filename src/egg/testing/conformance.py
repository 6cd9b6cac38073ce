"""What each Protocol promises, as test classes to subclass.

    class TestMyArchive(ArchiveConformance):
        def make_archive(self):
            return MyArchive(...)

A runner that collects `test_` methods, such as pytest, needs no more.
"""

from __future__ import annotations

from collections.abc import Sequence

from egg.protocols import Archive, CodeAgent, Planner
from egg.schema.analysis import Analysis
from egg.schema.candidate import Candidate
from egg.schema.evaluation import Status
from egg.schema.plan import Option, StagePlan
from egg.schema.run import AttemptFinished, FinalMeasured, RunState, fold
from egg.schema.task import Task
from egg.testing.factories import (
    make_analysis,
    make_attempt,
    make_candidate,
    make_diagnosis,
    make_evaluation,
    make_events,
    make_failed_evaluation,
    make_plan,
    make_state,
    make_task,
)
from egg.testing.fakes import FakeAuthor, FakeEvaluator

MOST_ATTEMPTS = 500
"""A planner that still has a plan after this many attempts of the fake author never ends."""


class ArchiveConformance:
    """An Archive gives back what was appended, in order, also after it was opened again."""

    def make_archive(self) -> Archive:
        """Returns an empty archive."""
        raise NotImplementedError

    def reopened(self) -> Archive:
        """Returns the archive that `make_archive` made last, as another process would open it."""
        raise NotImplementedError

    def test_a_new_archive_is_empty(self) -> None:
        assert list(self.make_archive().events()) == []

    def test_events_come_back_equal_and_in_order(self) -> None:
        archive = self.make_archive()
        for count, event in enumerate(make_events(), start=1):
            archive.append(event)
            assert tuple(archive.events()) == make_events()[:count]

    def test_reading_is_repeatable_and_adds_nothing(self) -> None:
        archive = self.make_archive()
        archive.append(make_events()[0])
        assert list(archive.events()) == list(archive.events())

    def test_events_are_there_when_it_is_opened_again(self) -> None:
        archive = self.make_archive()
        for event in make_events()[:3]:
            archive.append(event)
        again = self.reopened()
        again.append(make_events()[3])
        assert tuple(again.events()) == make_events()[:4]

    def test_values_that_json_lacks_come_back(self) -> None:
        archive = self.make_archive()
        evaluation = make_evaluation(profile={"a_ms": float("inf"), "b_ms": 1e-320})
        attempt = make_attempt(evaluation=evaluation, candidate=make_candidate(source="'é\u2028\0'\r\n"))
        archive.append(make_events()[0])
        archive.append(AttemptFinished(attempt=attempt))
        assert list(archive.events())[1] == AttemptFinished(attempt=attempt)


class CodeAgentConformance:
    """A CodeAgent offers named steps, and writes the same candidate for the same step."""

    def make_agent(self) -> CodeAgent:
        """Returns the agent."""
        raise NotImplementedError

    def make_task(self) -> Task:
        """Returns a task that the agent can do something about."""
        return make_task()

    def make_analyses(self) -> Sequence[Analysis]:
        """Returns the analyses of that task, one a workload."""
        return (make_analysis(),)

    def test_the_reference_is_the_task_itself(self) -> None:
        agent, task, analyses = self._parts()
        reference = agent.reference(task, analyses)
        assert reference == agent.reference(task, analyses)
        assert (reference.language, reference.structure, reference.parent_ids) == ("torch", (), ())

    def test_options_are_pure_and_have_ids_of_their_own(self) -> None:
        agent, task, analyses = self._parts()
        for candidate in self._reachable():
            options = agent.options(task, analyses, candidate)
            assert options == agent.options(task, analyses, candidate)
            assert len({o.id for o in options}) == len(options)
            assert all(o.predicted_effect > 0 and o.title and o.principle_id for o in options)

    def test_the_reference_has_something_to_try_and_it_is_structure(self) -> None:
        agent, task, analyses = self._parts()
        options = agent.options(task, analyses, agent.reference(task, analyses))
        assert options
        assert {o.stage for o in options} == {"structure"}

    def test_writing_is_repeatable_and_names_the_parent(self) -> None:
        agent, task, analyses = self._parts()
        for parent in self._reachable()[:2]:
            for option in agent.options(task, analyses, parent):
                written = agent.write(task, analyses, parent, _plan_of(parent, option))
                assert written.id == agent.write(task, analyses, parent, _plan_of(parent, option)).id
                assert written.id != parent.id
                assert written.parent_ids[:1] == (parent.id,)
                assert written.author == agent.name
                assert written.stage == option.stage

    def test_a_structure_step_is_recorded_and_a_knob_step_changes_that_knob_alone(self) -> None:
        agent, task, analyses = self._parts()
        for parent in self._reachable()[:2]:
            for option in agent.options(task, analyses, parent):
                written = agent.write(task, analyses, parent, _plan_of(parent, option))
                if option.stage == "structure":
                    assert option.id in written.structure
                else:
                    changed = [f"{k}={v}" for k, v in written.schedule.items() if parent.schedule.get(k) != v]
                    assert (written.structure, changed) == (parent.structure, [option.id])

    def _parts(self) -> tuple[CodeAgent, Task, Sequence[Analysis]]:
        return self.make_agent(), self.make_task(), self.make_analyses()

    def _reachable(self) -> list[Candidate]:
        """Returns the reference and what its options lead to."""
        agent, task, analyses = self._parts()
        reference = agent.reference(task, analyses)
        options = agent.options(task, analyses, reference)
        return [reference, *(agent.write(task, analyses, reference, _plan_of(reference, o)) for o in options)]


class PlannerConformance:
    """A Planner is a pure function of the state, plans only what is offered, and comes to an end."""

    def make_planner(self) -> Planner:
        """Returns the planner."""
        raise NotImplementedError

    def test_the_first_plan_starts_from_nothing(self) -> None:
        plan = self.make_planner().next(make_state(), _offered)
        assert plan is not None
        assert (plan.index, plan.parent_id, plan.option_id) == (0, None, None)
        assert plan.allowance_s > 0

    def test_the_first_plan_is_there_even_without_any_budget(self) -> None:
        started = make_state().started
        config = started.config.updated(budget_s=0.001, budget_attempts=0)
        state = make_state(started=started.updated(config=config), spent_s=99.0)
        assert self.make_planner().next(state, _offered) is not None

    def test_the_same_state_gives_the_same_plan_also_from_another_planner(self) -> None:
        for state in self._walk():
            assert self.make_planner().next(state, _offered) == self.make_planner().next(state, _offered)

    def test_every_plan_takes_an_offered_option_of_a_known_candidate_once(self) -> None:
        *_, last = self._walk()
        for attempt in last.attempts[1:]:
            plan = attempt.plan
            assert plan.parent_id is not None
            option = {o.id: o for o in _offered(last.candidate(plan.parent_id))}[str(plan.option_id)]
            assert (plan.stage, plan.predicted_effect) == (option.stage, option.predicted_effect)
            assert plan.objective
            assert plan.hypothesis
        steps = [(a.plan.parent_id, a.plan.option_id) for a in last.attempts if a.repaired_from is None]
        assert len(set(steps)) == len(steps)
        assert [a.plan.index for a in last.attempts] == list(range(len(last.attempts)))

    def test_the_search_ends(self) -> None:
        *_, last = self._walk()
        assert 1 < len(last.attempts) < MOST_ATTEMPTS

    def test_a_failure_is_judged_as_failed_and_the_passed_reference_is_accepted(self) -> None:
        planner, state = self.make_planner(), make_state()
        assert planner.judge(state, make_plan(), make_failed_evaluation())[0] == "failed"
        assert planner.judge(state, make_plan(), make_evaluation(1.0))[0] == "accepted"

    def test_what_is_slower_is_never_accepted(self) -> None:
        parent = make_attempt()
        plan = make_plan(index=1, parent_id=parent.candidate.id, option_id="fuse")
        verdict, reason = self.make_planner().judge(make_state(parent), plan, make_evaluation(0.5))
        assert verdict in ("kept", "rejected")
        assert reason

    def test_finalists_are_distinct_and_end_with_the_reference(self) -> None:
        for state in self._walk()[1:]:
            names = self.make_planner().finalists(state)
            assert names[-1] == state.attempts[0].candidate.id
            assert len(set(names)) == len(names)
            assert all(state.candidate(name) for name in names)

    def test_the_winner_was_measured_and_passed(self) -> None:
        *_, last = self._walk()
        evaluator = FakeEvaluator()
        for name in self.make_planner().finalists(last):
            evaluation = evaluator.evaluate(last.candidate(name), "attest", 10.0)
            last = fold(last, FinalMeasured(candidate_id=name, evaluation=evaluation))
        outcome = self.make_planner().outcome(last, interrupted=False)
        winner = {f.candidate_id: f.evaluation for f in last.finals}[outcome.winner_id]
        assert outcome.verified == (winner.status is Status.PASSED)
        assert not outcome.faster or (winner.speedup_low or 0.0) > 1.0
        assert outcome.summary
        assert self.make_planner().outcome(last, interrupted=True).stopped_by == "interrupted"

    def _walk(self) -> list[RunState]:
        """Returns every state of a search with the fake author and evaluator, without repairs."""
        planner, author, evaluator = self.make_planner(), FakeAuthor(), FakeEvaluator()
        states = [make_state()]
        while len(states) < MOST_ATTEMPTS:
            state = states[-1]
            plan = planner.next(state, _offered)
            if plan is None:
                break
            task, analyses = state.started.task, state.analyses
            if plan.parent_id is None:
                candidate = author.reference(task, analyses)
            else:
                candidate = author.write(task, analyses, state.candidate(plan.parent_id), plan)
            evaluation = evaluator.evaluate(candidate, "search", plan.allowance_s)
            verdict, reason = planner.judge(state, plan, evaluation)
            attempt = make_attempt(
                plan=plan,
                candidate=candidate,
                evaluation=evaluation,
                diagnosis=make_diagnosis(),
                verdict=verdict,
                reason=reason,
            )
            states.append(fold(state, AttemptFinished(attempt=attempt)))
        return states


def _offered(candidate: Candidate) -> Sequence[Option]:
    return FakeAuthor().options(make_task(), (make_analysis(),), candidate)


def _plan_of(parent: Candidate, option: Option) -> StagePlan:
    return make_plan(
        index=1,
        stage=option.stage,
        principle_ids=(option.principle_id,),
        option_id=option.id,
        predicted_effect=option.predicted_effect,
        parent_id=parent.id,
    )
