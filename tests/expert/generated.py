"""Random graphs as generated code: drawn, rewritten, printed, compiled many in one unit, run, held against the oracle.

The verdict is the evaluation's own: reference, float64 oracle and tolerances are those that a candidate meets in a run.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from tests.expert.candidates import DEVICE, analyses_of, imported
from tests.expert.random_graphs import FLOATS, RandomGraph, random_graphs
from tests.expert.run_graph import is_true, values_for
from torch import Tensor, nn
from torch._export.utils import _collect_all_valid_cia_ops

from egg.errors import TaskError
from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.compare import Expected, Measured, Mismatch, measure, structure_mismatch
from egg.evaluation.correctness.reference import Draw, Reference, run
from egg.evaluation.tensors import walk
from egg.expert.design import LEVELS, LOOPS, ONLINE, SPLIT, SWITCHES, apply_option, design_of, switch_values
from egg.expert.emit import definitions
from egg.expert.emit.build import COMPILE_FLAGS, LINK_FLAGS
from egg.expert.products import loop_products
from egg.expert.rewrites.registry import moves, sites_of
from egg.expert.writer import Writer
from egg.schema.candidate import Candidate
from egg.schema.graph import Graph
from egg.schema.plan import ScheduleValue
from egg.schema.task import Task
from egg.tasks.find import task_from_module

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@dataclass(frozen=True)
class Case:
    """One graph with one structure and one schedule of it."""

    seed: int
    """Of the batch that the case was drawn in."""
    number: int
    """Of the case in its batch, from 0."""
    graph: RandomGraph
    task: Task
    candidate: Candidate
    """Its `structure` and `schedule` are drawn too."""
    skipped: int = 0
    """Graphs that were drawn before this one and can't be a task, as PyTorch does not export them as they are."""

    @property
    def dtype(self) -> str:
        """Name of the dtype of the arguments."""
        return str(self.graph.args[0].dtype).removeprefix("torch.")

    def __str__(self) -> str:
        return (
            f"case {self.number} of seed {self.seed}\n{self.graph.text}\n"
            f"structure {' '.join(self.candidate.structure)}\nschedule {self.candidate.schedule}"
        )


def draw_cases(count: int, batch_seed: int) -> list[Case]:
    """Returns cases that depend on the seed alone."""
    with patch("torch.export.exported_program._collect_all_valid_cia_ops", cache(_collect_all_valid_cia_ops)):
        return [_case(batch_seed, number) for number in range(count)]


def draw_graph(graph_seed: int, dtype: torch.dtype) -> RandomGraph:
    """Returns one graph. Hypothesis varies what it drew before; a seed of its own makes each graph a new one."""
    drawn: list[RandomGraph] = []

    @seed(graph_seed)
    @settings(max_examples=2, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=SLOW)
    @given(random_graphs((dtype,)))  # its first choice is never the simplest, which would leave one dtype out
    def collect(graph: RandomGraph) -> None:
        drawn.append(graph)

    collect()
    return drawn[-1]  # the first is the simplest one there is


def _case(batch_seed: int, number: int) -> Case:
    random = Random(f"{batch_seed} {number}")
    skipped = 0
    while (found := _exported(draw_graph(random.getrandbits(32), random.choice(FLOATS)))) is None:
        skipped += 1
    graph, task, exported = found
    written = Writer(DEVICE).write(task, exported, random_structure(random, exported), (), 1.0)
    values: dict[str, ScheduleValue] = {k: random.choice(s.choices) for k, s in written.schedule_space.items()}
    return Case(batch_seed, number, graph, task, written.updated(schedule=values), skipped)


def _exported(drawn: RandomGraph) -> tuple[RandomGraph, Task, list[Graph]] | None:
    """Returns a drawn graph with its task and export; None where PyTorch can't export it, or in another form."""
    task = task_from_module(copy.deepcopy(drawn.module), drawn.args)
    try:
        graphs = [a.graph for a in analyses_of(task)]
    except TaskError:
        return None
    module = copy.deepcopy(drawn.module)
    true = all(is_true(graph, values_for(graph, module, *drawn.args)) for graph in graphs)
    return (drawn, task, graphs) if true else None


def case_of(number: int, module: nn.Module, args: tuple[Tensor, ...], structure: tuple[str, ...]) -> Case:
    """Returns the case of a module of one's own, with the first schedule."""
    task = task_from_module(module, args)
    graphs = [a.graph for a in analyses_of(task)]
    written = Writer(DEVICE).write(task, graphs, structure, (), 1.0)
    return Case(0, number, RandomGraph(module, args, repr(module)), task, written)


def random_structure(random: Random, graphs: Sequence[Graph]) -> tuple[str, ...]:
    """Returns structure options that apply, rewrites first; one of them cuts the program into kernels."""
    chosen: list[str] = []
    design = design_of(graphs, ())
    for move in moves():
        if random.random() < 0.5 and any(True for graph in design.graphs for _ in sites_of(graph, move)):
            chosen.append(move)
            design = apply_option(design, move)
    chosen.append(random.choice(list(LEVELS)))
    if random.random() < 0.7 and any(loop_products(graph) for graph in design.graphs):
        chosen.append(LOOPS)
    chosen += [move for move, share in ((SPLIT, 0.25), (ONLINE, 0.7)) if random.random() < share]
    for move in SWITCHES:
        if random.random() < 0.5:
            chosen.append(f"{move}={random.choice(switch_values(move)[1:])}")
    return tuple(chosen)


def build(cases: Sequence[Case], folder: Path, optimisation: str = "-O1") -> list[ModuleType]:
    """Returns the candidates' files as modules whose kernels are compiled together in `folder`."""
    import tvm_ffi.cpp

    folder.mkdir(parents=True, exist_ok=True)
    modules = [imported(_scheduled(c), folder, f"candidate_{c.seed}_{c.number}") for c in cases]
    texts = [_renamed(m, f"g{c.number}_") for c, m in zip(cases, modules, strict=True) if hasattr(m, "KERNEL_SOURCE")]
    if not texts:
        return modules
    lines = [line for text in texts for line in text.splitlines() if line.startswith(("#include", "#define"))]
    bodies = ["\n".join(x for x in text.splitlines() if not x.startswith(("#include", "#define"))) for text in texts]
    spaces = (f"namespace part{n} {{\n{body}\n}}\n" for n, body in enumerate(bodies))
    path = folder / "together.cpp"
    path.write_text("\n".join((*dict.fromkeys(lines), *spaces)))
    name = f"together_{folder.name}"
    flags = [*COMPILE_FLAGS, optimisation]
    library = tvm_ffi.cpp.load(
        name, cpp_files=str(path), extra_cflags=flags, extra_ldflags=list(LINK_FLAGS), build_directory=str(folder)
    )
    for case, module in zip(cases, modules, strict=True):
        vars(module)["_load"] = _loader(library, f"g{case.number}_")
    return modules


def _scheduled(case: Case) -> str:
    return f"{case.candidate.source}\nSCHEDULE = {dict(case.candidate.schedule)!r}\n"


def _renamed(module: ModuleType, prefix: str) -> str:
    """Returns the C++ text of a candidate with its exported functions under names of their own."""
    numbers = {k.replace(".", "_"): v for k, v in module.SCHEDULE.items()}
    used = {k: v for k, v in numbers.items() if k in module.KERNEL_SOURCE}
    return definitions(used) + module.KERNEL_SOURCE.replace("__tvm_ffi_", f"__tvm_ffi_{prefix}")


def _loader(library: Any, prefix: str) -> Any:
    def load(name: str, source: str) -> SimpleNamespace:
        names = set(re.findall(r"__tvm_ffi_(run\d+)", source))
        return SimpleNamespace(**{n: getattr(library, prefix + n) for n in names})

    return load


def faults(case: Case, module: ModuleType) -> Iterator[str]:
    """Yields what is wrong with a candidate's call, under the rule that every candidate is held to.

    Drawn graphs are true, so a shape that a lowering does not agree with is a fault of the lowering.
    """
    yield from (reason for reason in case.candidate.not_covered if "the graph gives its result the shape" in reason)
    reference = Reference(case.task)
    draw = reference.draw(case.task.workloads[0].name, case.task.workloads[0].seed, "own", False)
    assert draw is not None
    expected = reference.expect(draw)
    model = module.ModelNew().train(case.task.training)
    output, call = run(model, draw.call, draw.state, draw.seed)
    if (fault := structure_mismatch(output, expected.output)) is not None:
        yield fault.message
        return
    after = {f"buffer {k}": v for k, v in model.state_dict().items()}
    given = {**draw.before(), **after, **dict(walk(output, "output"))}
    assert all(torch.equal(a, b) for a, b in zip(call[0], draw.call[0], strict=True)), "an argument was changed"
    for leaf, wanted in expected.leaves.items():
        outcome = _judged(reference, draw, leaf, given[leaf], wanted)
        if isinstance(outcome, Measured):
            outcome = None if outcome.passed else outcome.miss()
        if outcome is not None:
            yield outcome.message


def _judged(reference: Reference, draw: Draw, leaf: str, got: Any, wanted: Expected) -> Measured | Mismatch | None:
    outcome = measure(leaf, got, wanted)
    if isinstance(outcome, Measured) and tolerance.asks_again(outcome.excess, outcome.elements):
        return measure(leaf, got, reference.reconsidered(draw, leaf, wanted))
    return outcome
