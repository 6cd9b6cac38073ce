"""The built-in author as code, profile and debug agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.expert.candidates import DEVICE, analyses_of, author, plan_for, task_of

from egg.expert.author import ExpertAuthor
from egg.expert.design import design_of
from egg.schema.analysis import Analysis
from egg.schema.evaluation import Status
from egg.schema.graph import Graph
from egg.schema.task import Task
from egg.testing.conformance import CodeAgentConformance
from egg.testing.factories import make_evaluation, make_failed_evaluation

TEXT = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 32)
        self.norm = nn.LayerNorm(32)

    def forward(self, x):
        y = self.norm(F.relu(F.relu(self.linear(x) * 2.0)))
        return y.softmax(-1), (x * 1.0).exp() + torch.exp(x), self.linear(x).mean(-1)


def get_inputs():
    return [torch.randn(64, 8)]
"""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return task_of(tmp_path, TEXT)


class TestConformance(CodeAgentConformance):
    @pytest.fixture(autouse=True)
    def given(self, task: Task) -> None:
        self.task, self.analyses = task, analyses_of(task)

    def make_agent(self) -> ExpertAuthor:
        return author()

    def make_task(self) -> Task:
        return self.task

    def make_analyses(self) -> Sequence[Analysis]:
        return self.analyses


def test_the_best_prediction_comes_first_and_fusion_is_complete_at_once(task: Task) -> None:
    agent, analyses = author(), analyses_of(task)
    reference = agent.reference(task, analyses)
    options = agent.options(task, analyses, reference)
    assert [o.predicted_effect for o in options] == sorted((o.predicted_effect for o in options), reverse=True)
    ids = {o.id for o in options}
    assert {"fuse.epilogue", "algebra.reduce-linear", "algebra.dead-and-duplicate"} <= ids
    fused = agent.write(task, analyses, reference, plan_for(reference, "fuse.epilogue"))
    assert fused.language == "cpp"
    assert set(fused.not_covered) == {"aten.linear.default: anchor"}


def test_structure_rebuilds_the_design(task: Task) -> None:
    agent, analyses = author(), analyses_of(task)
    candidate = agent.reference(task, analyses)
    for option_id in ("algebra.reduce-linear", "fuse.rows", "algebra.dead-and-duplicate"):
        candidate = agent.write(task, analyses, candidate, plan_for(candidate, option_id))
    assert candidate.structure == ("algebra.reduce-linear", "fuse.rows", "algebra.dead-and-duplicate")
    design = agent.design_of(analyses, candidate)
    assert design == design_of([a.graph for a in analyses], candidate.structure)
    again = author().write(task, analyses, candidate, plan_for(candidate, None))
    assert again.parent_ids == (candidate.id,)


def test_a_number_changes_the_schedule_and_not_the_source(task: Task) -> None:
    agent, analyses = author(), analyses_of(task)
    reference = agent.reference(task, analyses)
    fused = agent.write(task, analyses, reference, plan_for(reference, "fuse.rows"))
    option = next(o for o in agent.options(task, analyses, fused) if o.stage == "tiling")
    tuned = agent.write(task, analyses, fused, plan_for(fused, option.id, option.stage))
    assert tuned.source == fused.source
    assert tuned.id != fused.id
    assert option.move in ("lanes", "tile")


def test_a_move_that_no_principle_lists_is_not_offered(task: Task) -> None:
    agent, analyses = ExpertAuthor(DEVICE, ()), analyses_of(task)
    assert agent.options(task, analyses, agent.reference(task, analyses)) == ()


def test_what_a_guard_cannot_tell_is_left_to_the_reference(tmp_path: Path) -> None:
    text = """
class Model(nn.Module):
    def forward(self, x, how=slice(1, 3)):
        return torch.relu(x[how]).exp()


def get_inputs():
    return [torch.randn(4, 4)]
"""
    task = task_of(tmp_path, text)
    agent, analyses = author(), analyses_of(task)
    reference = agent.reference(task, analyses)
    assert reference.language == "torch"
    assert agent.options(task, analyses, reference) == ()


def test_repair_steps_back_by_half_or_to_the_parent(task: Task) -> None:
    agent, analyses = author(), analyses_of(task)
    reference = agent.reference(task, analyses)
    failed = make_failed_evaluation(status=Status.WRONG_VALUE)

    def repaired(option_id: str) -> tuple[str, ...] | None:
        plan = plan_for(reference, option_id)
        wrong = agent.write(task, analyses, reference, plan)
        found = agent.repair(task, analyses, wrong, failed, plan)
        assert found is None or found.parent_ids == (reference.id,)
        return None if found is None else found.structure

    assert repaired("fuse.rows") == ("fuse.pointwise",)
    assert repaired("fuse.epilogue") == ("fuse.pointwise",)
    assert repaired("fuse.pointwise") is None
    assert repaired("algebra.reduce-linear") is None
    steps = repaired("algebra.dead-and-duplicate")
    assert steps is not None
    assert len(steps) == 1
    assert steps[0].startswith("algebra.dead-and-duplicate@")


def test_diagnosis_names_the_bottleneck_with_figures(task: Task) -> None:
    agent, analyses = author(), analyses_of(task)
    evaluation = make_evaluation()
    assert evaluation.candidate_ms is not None
    said = {
        name: agent.diagnose(
            [a.updated(floor_ms=share * evaluation.candidate_ms) for a in analyses],
            DEVICE,
            evaluation.updated(profile={"library_share_pct": library, "aten_calls": calls}),
        )
        for name, share, library, calls in (
            ("none", 0.9, 0.0, 0.0),
            ("library", 0.3, 80.0, 3.0),
            ("memory", 0.3, 5.0, 3.0),
            ("launch", 0.3, 80.0, 0.7 * evaluation.candidate_ms / DEVICE.launch_us * 1e3),
        )
    }
    assert {name: d.bottleneck for name, d in said.items()} == {name: name for name in said}
    assert "80 %" in said["library"].summary
    failed = agent.diagnose(analyses, DEVICE, make_failed_evaluation(status=Status.COMPILE_ERROR))
    assert failed.bottleneck == "build"


NORM = """
class Model(nn.Module):
    def forward(self, x):
        return torch.linalg.vector_norm(x, dim=-1) * 2.0 + 1.0


def get_inputs():
    return [torch.randn(1)]
"""


def test_an_operator_with_a_wrong_shape_in_the_graph_stays_a_torch_call(tmp_path: Path) -> None:
    task = task_of(tmp_path, NORM)
    (right,) = analyses_of(task)
    analyses = (right.updated(graph=_with_shape(right.graph, (1,))),)
    agent = author()
    reference = agent.reference(task, analyses)
    for option_id in ("fuse.pointwise", "fuse.rows", "fuse.epilogue"):
        candidate = agent.write(task, analyses, reference, plan_for(reference, option_id))
        (reason,) = candidate.not_covered
        assert "linalg_vector_norm" in reason
        assert "the graph gives its result the shape (1,), which should be ()" in reason


def _with_shape(graph: Graph, shape: tuple[int, ...]) -> Graph:
    """Returns the graph with this shape for every computed value, as a fault of an exporter would have it."""
    values = [[v.updated(spec=v.spec.updated(shape=shape)) for v in n.outputs if v.spec] for n in graph.nodes]
    nodes = [n.updated(outputs=tuple(v)) for n, v in zip(graph.nodes, values, strict=True)]
    return graph.updated(nodes=tuple(nodes))
