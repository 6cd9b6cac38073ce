"""From a structure to a candidate: lower, group, print."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from egg.errors import TaskError
from egg.expert.design import VIEW, Design, design_of, schedules
from egg.expert.emit import print_cpp
from egg.expert.emit.forward import Part, Unwritable
from egg.expert.emit.guards import guard
from egg.expert.emit.module import Tuning, Words, base_of, print_module, reference_module
from egg.expert.emit.signature import ANY
from egg.expert.emit.state import Slot, State
from egg.expert.ir import Library
from egg.expert.loops import Native, Schedule
from egg.schema.candidate import Candidate, KnobSpec
from egg.schema.device import Device
from egg.schema.graph import Graph
from egg.schema.plan import Option, ScheduleValue
from egg.schema.task import Task

AUTHOR = "expert"


class Writer:
    """Writes candidates for one device."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def reference(self, task: Task, graphs: Sequence[Graph]) -> Candidate:
        """Returns the task itself: its own text, or its graph as torch calls. Raises TaskError where neither works."""
        source = reference_module(task)
        if source is None:
            try:
                source = print_module(task, self._parts(task, Design(tuple(graphs))), Tuning(), Words(), _state(task))
            except Unwritable as reason:
                raise TaskError(f"{task.entry}: {reason}; give the class in a file of its own") from reason
        return Candidate(language="torch", source=source, author=AUTHOR, rationale="The task itself.")

    def can_write(self, task: Task, graphs: Sequence[Graph]) -> bool:
        """Returns whether the calls that kernels are made for can be told from others by plain facts."""
        base = base_of(task)
        signature = base.signature if base is not None else ANY
        try:
            for part in self._parts(task, Design(tuple(graphs))):
                guard(part, signature, task.training)
        except Unwritable:
            return False
        return True

    def write(
        self, task: Task, graphs: Sequence[Graph], structure: tuple[str, ...], steps: Sequence[str], predicted_ms: float
    ) -> Candidate:
        """Returns the candidate of a structure, with the first schedule; the caller adds where it comes from."""
        parts = self._parts(task, design_of(graphs, structure))
        tuning = self._tuning(parts)
        not_covered = tuple(dict.fromkeys(_reasons(parts)))
        state = None if base_of(task) is not None else _state(task)
        source = print_module(task, parts, tuning, Words(tuple(steps), not_covered), state)
        return Candidate(
            language="cpp" if any(p.unit is not None for p in parts) else "torch",
            source=source,
            schedule=dict(tuning.values),
            schedule_space=dict(tuning.space),
            structure=structure,
            author=AUTHOR,
            rationale="",
            predicted_ms=predicted_ms,
            not_covered=not_covered,
        )

    def retuned(self, parent: Candidate, option: Option) -> Candidate:
        """Returns the parent with one number changed. The source stays, so that equal builds are shared."""
        knob, _, text = option.id.partition("=")
        spec = parent.schedule_space[knob]
        value = next(v for v in spec.choices if str(v) == text)
        ms = parent.predicted_ms
        return parent.updated(
            schedule={**parent.schedule, knob: value},
            parent_ids=(parent.id,),
            stage=option.stage,
            rationale=f"{option.title} ({option.principle_id}).",
            predicted_ms=None if ms is None else ms / option.predicted_effect,
        )

    def _parts(self, task: Task, design: Design) -> list[Part]:
        parts: list[Part] = []
        for number, workload in enumerate(task.workloads):
            program = design.program(number)
            layout = design.layout(number, program, self._device)
            made = schedules(layout, self._device)
            has_kernels = any(isinstance(s, Native) for s in layout.steps)
            parts.append(Part(workload, program, layout, print_cpp(layout, made) if has_kernels else None))
        return parts

    def _tuning(self, parts: Sequence[Part]) -> Tuning:
        values: dict[str, ScheduleValue] = {}
        space: dict[str, KnobSpec] = {}
        for part in parts:
            made: dict[str, Schedule] = schedules(part.layout, self._device)
            for kernel, one in made.items():
                values |= {f"{kernel}.{knob}": value for knob, value in one.values.items()}
                space |= {f"{kernel}.{knob}": spec for knob, spec in one.space.items()}
        return Tuning(values, space)


def _reasons(parts: Sequence[Part]) -> list[str]:
    return [
        f"{s.node.op}: {s.reason}" for p in parts for s in p.layout.steps if isinstance(s, Library) and s.reason != VIEW
    ]


def _state(task: Task) -> State:
    """Returns the slots of the task's module, built once for real."""
    import torch

    from egg.tasks.load import materialize, spec_of

    module = materialize(task, task.workloads[0], seed=0).module
    slots: list[Slot] = []
    first: dict[int, str] = {}
    saved = set(module.state_dict())
    for kind, named in (
        ("parameter", module.named_parameters(remove_duplicate=False)),
        ("buffer", module.named_buffers(remove_duplicate=False)),
    ):
        for path, tensor in named:
            same_as = first.setdefault(id(tensor), path)
            data = None
            if path not in saved:
                raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
                data = base64.b64encode(bytes(raw.tolist())).decode()
            slots.append(Slot(path, kind, spec_of(tensor), path in saved, same_as if same_as != path else None, data))
    return State(tuple(slots))
