"""The steps that can be taken from a candidate, with what the cost model expects of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from egg.expert.cost import predict_ms, step_ms
from egg.expert.design import (
    LEVELS,
    LOOPS,
    ONLINE,
    SPLIT,
    SWITCHES,
    VIEW,
    Design,
    apply_option,
    design_of,
    schedules,
    switch_values,
)
from egg.expert.ir import Library
from egg.expert.loops import Kernel, Layout, Native, Schedule, Step
from egg.expert.products import loop_products
from egg.expert.rewrites.matching import Facts
from egg.expert.rewrites.registry import moves, sites_of
from egg.schema.analysis import Analysis
from egg.schema.candidate import Candidate
from egg.schema.device import Device
from egg.schema.plan import Option, ScheduleValue

MOST_SINGLE_SITES = 4
"""With at most this many places of a rewrite, each is offered on its own too."""

OVERRIDE = {"loops.vector-axis": 0.9, "scratch": 0.95, "in-place": 0.95, SPLIT: 0.95, ONLINE: 0.95}
"""What is left of a prediction where the grouping had chosen otherwise: its own choice is right more often than not."""

HOPELESS = 0.7
"""Loops that promise less than this against a library call are not worth their build."""

TITLES = {
    "fuse.pointwise": "fuse pointwise chains into native loops",
    "fuse.rows": "finish each row in one native loop nest",
    "fuse.epilogue": "do everything around library products in native loops",
    LOOPS: "write a small product as a fused row loop",
    SPLIT: "split long reductions over the cores",
    ONLINE: "find the maximum and the sum of exponentials in one pass",
    "algebra.dead-and-duplicate": "drop operators without effect and compute equal ones once",
    "algebra.fold-constants": "put uniform constants into the operators that use them",
    "algebra.merge-scale-bias": "merge scales and shifts",
    "algebra.fold-batch-norm": "fold frozen batch normalisation into weights",
    "algebra.reduce-linear": "reduce the operands of a product instead of its result",
    "algebra.reduce-conv": "sum windows of the input instead of a convolution's output",
    "algebra.reassociate": "multiply matrices in the cheaper order",
    "algebra.absorb-transpose": "read transposed operands as they lie",
    "algebra.compose-pools": "average once instead of twice",
}


class Offers:
    """Options for one device. What was worked out for a structure is remembered; it depends on nothing else."""

    def __init__(self, device: Device, principles: Mapping[str, str]) -> None:
        self._device = device
        self._principles = principles
        self._known: dict[tuple[str, tuple[str, ...]], tuple[Design, tuple[Layout, ...], float]] = {}

    def of(self, analyses: Sequence[Analysis], parent: Candidate) -> tuple[Option, ...]:
        """Returns every step from `parent`: structure options, best prediction first, then knob neighbours."""
        structures = [
            option
            for option_id in self._candidates(analyses, parent.structure)
            if (option := self._structure_option(analyses, parent.structure, option_id)) is not None
        ]
        structures.sort(key=lambda o: -o.predicted_effect)
        return (*structures, *self._knob_options(analyses, parent))

    def predicted_ms(self, analyses: Sequence[Analysis], structure: tuple[str, ...]) -> float:
        """Returns what the cost model expects a structure to take, for all workloads."""
        return self._worked_out(analyses, structure)[2]

    def _candidates(self, analyses: Sequence[Analysis], structure: tuple[str, ...]) -> list[str]:
        """Returns the ids of what might be done, without saying yet whether it changes anything."""
        design = self._worked_out(analyses, structure)[0]
        found: list[str] = []
        for move in moves():
            places = list(dict.fromkeys(site.at for graph in design.graphs for _, site in sites_of(graph, move)))
            found += [move] * bool(places)
            if 1 < len(places) <= MOST_SINGLE_SITES and move not in ("algebra.dead-and-duplicate",):
                found += [f"{move}@{at}" for at in places]
        if design.grouping is None:
            return [*found, *self._levels(analyses, structure)]
        if design.grouping.level == "pointwise":
            found.append(self._levels(analyses, structure)[0])
        found += self._loops(design)
        taken = {s.partition("=")[0] for s in structure}
        found += [move for move in (SPLIT, ONLINE) if move not in taken]
        for move in SWITCHES:
            if move not in taken:
                found += [f"{move}={value}" for value in switch_values(move)[1:]]
        return found

    def _levels(self, analyses: Sequence[Analysis], structure: tuple[str, ...]) -> list[str]:
        """Returns the moves that cut the program into kernels, the one that fuses most first, under its true name."""
        rows = self._worked_out(analyses, (*structure, "fuse.rows"))[1]
        same = rows == self._worked_out(analyses, (*structure, "fuse.pointwise"))[1]
        if any(isinstance(s, Library) and s.reason != VIEW for layout in rows for s in layout.steps):
            return ["fuse.epilogue"] if same else ["fuse.epilogue", "fuse.pointwise"]
        if same and not any(_reduces(s) for layout in rows for s in layout.steps):
            return ["fuse.pointwise"]
        return ["fuse.rows"] if same else ["fuse.rows", "fuse.pointwise"]

    def _loops(self, design: Design) -> list[str]:
        """Returns the ids that turn products into loops: all that may gain together, then each alone."""
        taken = design.grouping.loops if design.grouping is not None else frozenset[str]()
        names = dict.fromkeys(name for graph in design.graphs for name in loop_products(graph) if name not in taken)
        if not names:
            return []
        return [LOOPS, *(f"{LOOPS}@{name}" for name in names if 1 < len(names) <= MOST_SINGLE_SITES)]

    def _structure_option(
        self, analyses: Sequence[Analysis], structure: tuple[str, ...], option_id: str
    ) -> Option | None:
        """Returns the option, or None where no principle has its move or the kernels stay as they are."""
        move = option_id.partition("@")[0].partition("=")[0]
        principle = self._principles.get(move)
        if principle is None:
            return None
        before = self._worked_out(analyses, structure)
        after = self._worked_out(analyses, (*structure, option_id))
        if after[1] == before[1] or (move in LEVELS and not _has_kernels(after[1])):
            return None
        effect = before[2] / after[2] * OVERRIDE.get(move, 1.0)
        if move == LOOPS and effect < HOPELESS:
            return None
        return Option(
            id=option_id,
            stage="structure",
            principle_id=principle,
            move=move,
            title=title_of(option_id),
            predicted_effect=effect,
        )

    def _knob_options(self, analyses: Sequence[Analysis], parent: Candidate) -> list[Option]:
        found: list[Option] = []
        if not parent.schedule:
            return found
        expected = _Expected(analyses, self._worked_out(analyses, parent.structure)[1], parent.schedule, self._device)
        for knob, value in parent.schedule.items():
            spec = parent.schedule_space[knob]
            for neighbour in spec.neighbours(value):
                found.append(
                    Option(
                        id=f"{knob}={neighbour}",
                        stage=spec.stage,
                        principle_id=spec.principle_id,
                        move=knob.rpartition(".")[2],
                        title=f"{knob} from {value} to {neighbour}: {spec.doc}",
                        predicted_effect=expected.effect(knob, neighbour),
                    )
                )
        return found

    def _worked_out(
        self, analyses: Sequence[Analysis], structure: tuple[str, ...]
    ) -> tuple[Design, tuple[Layout, ...], float]:
        key = (analyses[0].task_hash, structure)
        if key not in self._known:
            if structure:
                design = apply_option(self._worked_out(analyses, structure[:-1])[0], structure[-1])
            else:
                design = design_of([a.graph for a in analyses], ())
            self._known[key] = (design, *self._laid_out(design))
        return self._known[key]

    def _laid_out(self, design: Design) -> tuple[tuple[Layout, ...], float]:
        layouts: list[Layout] = []
        total_ms = 0.0
        for number, graph in enumerate(design.graphs):
            layout = design.layout(number, design.program(number), self._device)
            layouts.append(layout)
            total_ms += predict_ms(layout, schedules(layout, self._device), graph, self._device)
        return tuple(layouts), total_ms


def _reduces(step: Step) -> bool:
    return isinstance(step, Kernel) and any(c.how is not None for stage in step.stages for c in stage.computes)


def _has_kernels(layouts: Sequence[Layout]) -> bool:
    return any(isinstance(step, Native) for layout in layouts for step in layout.steps)


def title_of(option_id: str) -> str:
    """Returns what a structure option does, in a few words."""
    move = option_id.partition("@")[0].partition("=")[0]
    at = option_id.partition("@")[2] or option_id.partition("=")[2]
    return TITLES.get(move, move) + (f": {at}" if at else "")


class _Expected:
    """What changing one number should bring, by the cost model: only its own kernel takes another time."""

    def __init__(
        self,
        analyses: Sequence[Analysis],
        layouts: Sequence[Layout],
        values: Mapping[str, ScheduleValue],
        device: Device,
    ) -> None:
        self._device = device
        self._values = values
        self._kernels = {
            step.name: (step, Facts(analysis.graph))
            for analysis, layout in zip(analyses, layouts, strict=True)
            for step in layout.steps
            if isinstance(step, Native)
        }
        made = {name: self._schedule(name, values) for name in self._kernels}
        self._total_ms = sum(
            predict_ms(layout, made, analysis.graph, device) for analysis, layout in zip(analyses, layouts, strict=True)
        )

    def effect(self, knob: str, value: ScheduleValue) -> float:
        """Returns the predicted speedup of the whole candidate."""
        name = knob.rpartition(".")[0]
        before, after = (self._kernel_ms(name, v) for v in (self._values, {**self._values, knob: value}))
        return self._total_ms / max(self._total_ms - before + after, 1e-9)

    def _kernel_ms(self, name: str, values: Mapping[str, ScheduleValue]) -> float:
        kernel, facts = self._kernels[name]
        return step_ms(kernel, {name: self._schedule(name, values)}, facts, self._device)

    def _schedule(self, name: str, values: Mapping[str, ScheduleValue]) -> Schedule:
        own = {knob.rpartition(".")[2]: v for knob, v in values.items() if knob.rpartition(".")[0] == name}
        return Schedule(own)
