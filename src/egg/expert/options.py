"""The steps that can be taken from a candidate, with what the cost model expects of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from egg.expert.design import LEVELS, LOOPS, SPLIT, SWITCHES, Design, apply_option, design_of, switch_values
from egg.expert.loops import Kernel, Layout
from egg.expert.prediction import layout_ms
from egg.expert.rewrites.registry import moves, sites_of
from egg.schema.analysis import Analysis
from egg.schema.candidate import Candidate
from egg.schema.device import Device
from egg.schema.plan import Option

MOST_SINGLE_SITES = 4
"""With at most this many places of a rewrite, each is offered on its own too."""

OVERRIDE = {"loops.vector-axis": 0.9, "scratch": 0.95, SPLIT: 0.95}
"""What is left of a prediction where the grouping had chosen otherwise: its own choice is right more often than not."""

TITLES = {
    "fuse.pointwise": "fuse pointwise chains into native loops",
    "fuse.rows": "finish each row in one native loop nest",
    LOOPS: "write a small product as a fused row loop",
    SPLIT: "split long reductions over the cores",
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
        return (*structures, *self._knob_options(parent))

    def predicted_ms(self, analyses: Sequence[Analysis], structure: tuple[str, ...]) -> float:
        """Returns what the cost model expects a structure to take, for all workloads."""
        return self._worked_out(analyses, structure)[2]

    def _candidates(self, analyses: Sequence[Analysis], structure: tuple[str, ...]) -> list[str]:
        """Returns the ids of what might be done, without saying yet whether it changes anything."""
        design, layouts, _ = self._worked_out(analyses, structure)
        found: list[str] = []
        for move in moves():
            places = list(dict.fromkeys(site.at for graph in design.graphs for _, site in sites_of(graph, move)))
            found += [move] * bool(places)
            if 1 < len(places) <= MOST_SINGLE_SITES and move not in ("algebra.dead-and-duplicate",):
                found += [f"{move}@{at}" for at in places]
        if design.grouping is None:
            return [*found, *LEVELS]
        if design.grouping.level == "pointwise":
            found.append("fuse.rows")
        found += [f"{LOOPS}@{name}" for name in _products(layouts) if name not in design.grouping.loops]
        taken = {s.partition("=")[0] for s in structure}
        if SPLIT not in taken:
            found.append(SPLIT)
        for move in SWITCHES:
            if move not in taken:
                found += [f"{move}={value}" for value in switch_values(move)[1:]]
        return found

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
        at = option_id.partition("@")[2] or option_id.partition("=")[2]
        title = TITLES.get(move, move) + (f": {at}" if at else "")
        return Option(
            id=option_id,
            stage="structure",
            principle_id=principle,
            move=move,
            title=title,
            predicted_effect=before[2] / after[2] * OVERRIDE.get(move, 1.0),
        )

    def _knob_options(self, parent: Candidate) -> list[Option]:
        found: list[Option] = []
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
                        predicted_effect=1.0,
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
            total_ms += layout_ms(layout, graph, self._device)
        return tuple(layouts), total_ms


def _products(layouts: Sequence[Layout]) -> list[str]:
    """Returns the library products with few enough rows to be loops, by name."""
    try:
        from egg.expert.lower.anchors import can_be_reduction
    except ImportError:
        return []
    return [
        s.node.name for layout in layouts for s in layout.steps if not isinstance(s, Kernel) and can_be_reduction(s)
    ]


def _has_kernels(layouts: Sequence[Layout]) -> bool:
    return any(isinstance(step, Kernel) for layout in layouts for step in layout.steps)
