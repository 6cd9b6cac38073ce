"""The built-in author: plays all three roles by rule.

A structure option is a rewrite of the graph, or a decision about what shares a kernel and how its loops lie. The ids of
the options that led to a candidate are all that is needed to rebuild it. A schedule option changes one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from egg.expert.debug import step_back
from egg.expert.design import Design, design_of
from egg.expert.options import Offers, title_of
from egg.expert.profile import diagnose
from egg.expert.writer import Writer
from egg.schema.analysis import Analysis
from egg.schema.candidate import Candidate
from egg.schema.device import Device
from egg.schema.evaluation import Evaluation
from egg.schema.plan import Option, StagePlan
from egg.schema.principle import Principle
from egg.schema.run import Diagnosis
from egg.schema.task import Task


class ExpertAuthor:
    """Code, profile and debug agent. Its answers depend on its arguments alone.

    `principles` tell which principle each move belongs to; a move that none of them lists is not offered.
    """

    name = "expert"

    def __init__(self, device: Device, principles: Iterable[Principle]) -> None:
        known = tuple(principles)
        self._principles = {move: p.id for p in reversed(known) for move in p.moves}
        self._titles = {p.id: p.title for p in known}
        self._device = device
        self._writer = Writer(device)
        self._offers = Offers(device, self._principles)

    def reference(self, task: Task, analyses: Sequence[Analysis]) -> Candidate:
        """Returns the task itself as a candidate: attempt 0 of every run.

        A task without text of its class becomes its exported graph, printed as torch calls. Raises TaskError where that
        can't be.
        """
        return self._writer.reference(task, [a.graph for a in analyses])

    def options(self, task: Task, analyses: Sequence[Analysis], parent: Candidate) -> tuple[Option, ...]:
        """Returns the steps that can be taken from `parent`, structure and schedule alike. Pure."""
        if not self._writer.can_write(task, [a.graph for a in analyses]):
            return ()
        return self._offers.of(analyses, parent)

    def write(self, task: Task, analyses: Sequence[Analysis], parent: Candidate, plan: StagePlan) -> Candidate:
        """Returns the candidate that `plan` asks for; without an option, the one with the best prediction.

        Raises ValueError where nothing can be done from `parent`.
        """
        option_id = plan.option_id or self._best(self.options(task, analyses, parent), parent)
        if option_id.partition("=")[0] in parent.schedule_space:
            offered = {o.id: o for o in self._offers.of(analyses, parent)}
            if option_id not in offered:
                raise ValueError(f"no option {option_id!r} from candidate {parent.id}")
            return self._writer.retuned(parent, offered[option_id])
        structure = (*parent.structure, option_id)
        principle = self._principles.get(_move(option_id), "no principle")
        return self._written(task, analyses, structure, parent, title_of(option_id), principle)

    def design_of(self, analyses: Sequence[Analysis], candidate: Candidate) -> Design:
        """Returns the structure of one of this author's candidates."""
        return design_of([a.graph for a in analyses], candidate.structure)

    def diagnose(self, analyses: Sequence[Analysis], device: Device, evaluation: Evaluation) -> Diagnosis:
        """Returns what binds the candidate, from what was measured."""
        return diagnose(analyses, device, evaluation)

    def repair(
        self, task: Task, analyses: Sequence[Analysis], failed: Candidate, evaluation: Evaluation, plan: StagePlan
    ) -> Candidate | None:
        """Returns the smallest step back that may pass; None when the parent is the answer."""
        structure = step_back([a.graph for a in analyses], failed, plan)
        if structure is None:
            return None
        why = f"Step back from {failed.structure[-1]}, which gave {evaluation.status}"
        principle = self._principles.get(_move(structure[-1]), plan.principle_ids[0])
        repaired = self._written(task, analyses, structure, failed, why, principle)
        return repaired.updated(parent_ids=failed.parent_ids)

    def _written(
        self, task: Task, analyses: Sequence[Analysis], structure: tuple[str, ...], parent: Candidate, why: str,
        principle_id: str,
    ) -> Candidate:  # fmt: skip
        graphs = [a.graph for a in analyses]
        steps = [self._decision(option_id) for option_id in structure]
        written = self._writer.write(task, graphs, structure, steps, self._offers.predicted_ms(analyses, structure))
        kept = {k: v for k, v in parent.schedule.items() if v in _choices(written, k)}
        return written.updated(
            schedule={**written.schedule, **kept}, parent_ids=(parent.id,), rationale=f"{why} ({principle_id})."
        )

    def _decision(self, option_id: str) -> str:
        """Returns a step with the principle behind it, in words."""
        principle = self._principles.get(_move(option_id), "no principle")
        return f"{option_id}: {self._titles.get(principle, principle)} ({principle})"

    def _best(self, options: Sequence[Option], parent: Candidate) -> str:
        if not options:
            raise ValueError(f"nothing can be done from candidate {parent.id}")
        return max(options, key=lambda o: o.predicted_effect).id


def _move(option_id: str) -> str:
    return option_id.partition("@")[0].partition("=")[0]


def _choices(candidate: Candidate, knob: str) -> tuple[object, ...]:
    spec = candidate.schedule_space.get(knob)
    return spec.choices if spec is not None else ()
