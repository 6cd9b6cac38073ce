"""The planner by rule: puts the decisions of this room together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from egg.planning import acceptance, budget, finals
from egg.planning.advice import Advice, Matching
from egg.planning.arms import arms, beam
from egg.planning.bandit import by_promise
from egg.planning.explore import explores, least_evidence
from egg.planning.parents import structure_options, structure_parents
from egg.planning.repairs import repair_plan
from egg.planning.stages import OBJECTIVES, structure_is_over
from egg.planning.sweep import most_promising, worth_trying
from egg.planning.tried import Tried
from egg.protocols import OptionsOf
from egg.schema.candidate import Candidate
from egg.schema.evaluation import Evaluation
from egg.schema.plan import Option, StagePlan
from egg.schema.principle import Principle
from egg.schema.run import Attempt, Outcome, RunState, Verdict


class RulePlanner:
    """Structure first, from the best so far; then mapping, tiling and memory of the best structures.

    `matching` finds the principles that apply: they give a step its reason, and a step that none of them speaks for
    is only taken when exploring, or as the first step where they speak for none. `language` is what the author writes.
    """

    def __init__(self, matching: Matching | None = None, language: str = "cpp") -> None:
        self._matching = matching
        self._language = language

    def next(self, state: RunState, options_of: OptionsOf) -> StagePlan | None:
        """Returns the next plan, or None when the search is over (nothing left to try, or the budget is spent)."""
        if not state.attempts:
            return self._first(state)
        if state.attempts[0].verdict != "accepted" or budget.is_spent(state):
            return None
        tried = Tried.of(state.attempts)
        advice = Advice(self._matching, state)
        first = len(state.attempts) == 1  # without one step taken, "nothing to gain" would be a guess
        exploring = explores(state.started.config, len(state.attempts))
        for parent, options, attempts in self._choices(state, options_of, tried):
            backed = advice.backed(options)
            if exploring:
                option = least_evidence(options, state.attempts, state.started.config.seed)
            else:
                option = most_promising((backed or options) if first else worth_trying(backed), attempts)
            if option is not None:
                return self._plan(state, parent, option, advice.reasons(option), exploring or option not in backed)
        return None

    def repair(self, state: RunState) -> StagePlan | None:
        """Returns the plan to repair the last attempt under, or None where it needs none, or may have none."""
        return repair_plan(state)

    def judge(self, state: RunState, plan: StagePlan, evaluation: Evaluation) -> tuple[Verdict, str]:
        """Returns the verdict for the outcome of a plan, and the reason in one sentence."""
        return acceptance.judge(state, plan, evaluation)

    def finalists(self, state: RunState) -> tuple[str, ...]:
        """Returns the ids of the candidates to measure again in fresh processes, best first, the reference last."""
        return finals.finalists(state)

    def outcome(self, state: RunState, interrupted: bool) -> Outcome:
        """Returns how the run ended, from the final measurements alone."""
        return finals.outcome(state, interrupted)

    def _choices(
        self, state: RunState, options_of: OptionsOf, tried: Tried
    ) -> Iterator[tuple[Candidate, list[Option], tuple[Attempt, ...]]]:
        """Yields parents with their untried options and the attempts to learn from, the preferred parent first."""
        if not structure_is_over(state) and not (arms(state) and budget.structure_share_is_spent(state)):
            for parent in structure_parents(state):
                options = tried.new(parent, options_of(parent))
                yield parent, structure_options(state, parent, options), state.attempts[1:]
        for arm in by_promise(beam(state)):
            parent = arm.head.candidate
            options = tried.new(parent, options_of(parent))
            for stage in arm.stages():
                if not arm.is_stuck(stage):
                    yield parent, [o for o in options if o.stage == stage], arm.tuned

    def _first(self, state: RunState) -> StagePlan:
        return StagePlan(
            index=0,
            stage="structure",
            objective="Measure the task itself, which every other version is held against.",
            hypothesis="It passes, and is as fast as itself.",
            principle_ids=(),
            predicted_effect=1.0,
            parent_id=None,
            language="torch",
            allowance_s=budget.allowance_s(state),
        )

    def _plan(
        self, state: RunState, parent: Candidate, option: Option, reasons: Sequence[Principle], exploring: bool
    ) -> StagePlan:
        expected = f"{reasons[0].title}; expected: {reasons[0].expects}" if reasons else option.title
        return StagePlan(
            index=len(state.attempts),
            stage=option.stage,
            objective=OBJECTIVES[option.stage],
            hypothesis=expected,
            principle_ids=tuple(p.id for p in reasons) or (option.principle_id,),
            option_id=option.id,
            predicted_effect=option.predicted_effect,
            parent_id=parent.id,
            language=self._language,
            allowance_s=budget.allowance_s(state),
            explores=exploring,
        )
