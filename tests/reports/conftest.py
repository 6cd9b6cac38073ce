"""A run that shows everything a report can show: accepted, kept, rejected, failed and repaired attempts."""

import pytest

from egg.schema.analysis import Analysis, OpCost
from egg.schema.candidate import Candidate, KnobSpec
from egg.schema.evaluation import Baseline, Evaluation, Failure, LeafCheck, Status, Trial
from egg.schema.graph import Graph, GraphInput, Node, Ref, TensorSpec, Value
from egg.schema.run import Attempt, FinalMeasured, RunState
from egg.testing import factories as make

REFERENCE = '''import torch
from torch import nn


class Model(nn.Module):
    """RMS normalisation of x plus a residual."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        y = x + residual
        return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight
'''

KERNEL = '''"""RMS normalisation with a residual, <one> pass & no copies."""

import torch
import tvm_ffi
from torch import nn

SCHEDULE = {"k0.lanes": 64, "k0.threads": 2}

CPP = r"""
#include <cmath>
// y = (x + r) * rsqrt(mean((x + r)^2) + eps) * w
void k0(const float* x, const float* r, const float* w, float* y, long rows, long cols) {
  #pragma omp parallel for
  for (long i = 0; i < rows; ++i) {
    float sum = 0.0f;
    for (long j = 0; j < cols; ++j) sum += x[j] * x[j];
  }
}
"""


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.kernels = tvm_ffi.cpp.load_inline("rms", cpp_sources=CPP, functions=["k0"])

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        self.kernels.k0(x, residual, self.weight, out)
        return torch.relu(out)
'''

SPEC = TensorSpec(shape=(512, 4096), dtype="float32")
ROW = TensorSpec(shape=(512, 1), dtype="float32")


def rms_analysis(workload: str = "default") -> Analysis:
    """Returns the analysis of the RMS normalisation."""
    nodes = (
        Node(op="aten.add.Tensor", args=(Ref(ref="x"), Ref(ref="residual")), outputs=(Value(name="add", spec=SPEC),)),
        Node(op="aten.pow.Tensor_Scalar", args=(Ref(ref="add"), 2), outputs=(Value(name="pow_1", spec=SPEC),)),
        Node(op="aten.mean.dim", args=(Ref(ref="pow_1"), (-1,), True), outputs=(Value(name="mean", spec=ROW),)),
        Node(op="aten.rsqrt.default", args=(Ref(ref="mean"),), outputs=(Value(name="rsqrt", spec=ROW),)),
        Node(op="aten.mul.Tensor", args=(Ref(ref="add"), Ref(ref="rsqrt")), outputs=(Value(name="mul", spec=SPEC),)),
        Node(op="aten.view.default", args=(Ref(ref="weight"),), outputs=(Value(name="view", spec=SPEC),)),
        Node(op="aten.mul.Tensor", args=(Ref(ref="mul"), Ref(ref="view")), outputs=(Value(name="mul_1", spec=SPEC),)),
    )
    big, half = 3 * SPEC.bytes, 2 * SPEC.bytes
    costs = [("add", big), ("pow_1", half), ("mean", SPEC.bytes), ("rsqrt", 4096), ("mul", half), ("mul_1", half)]
    ops = tuple(
        OpCost(
            name=name,
            op=next(n.op for n in nodes if n.name == name),
            flops=SPEC.numel,
            bytes=moved,
            arithmetic_intensity=SPEC.numel / moved,
            floor_ms=moved / 20e6,
            bound="memory",
        )
        for name, moved in costs
    )
    view = OpCost(
        name="view", op="aten.view.default", flops=0, bytes=0, arithmetic_intensity=0, floor_ms=0, bound="launch"
    )
    inputs = tuple(GraphInput(name=n, kind="input", path=(i,), spec=SPEC) for i, n in enumerate(("x", "residual")))
    weight = GraphInput(name="weight", kind="parameter", path=("weight",), spec=SPEC)
    return make.make_analysis(
        workload=workload,
        graph=Graph(inputs=(*inputs, weight), nodes=nodes, returns=Ref(ref="mul_1")),
        ops=(*ops, view),
        flops=6 * SPEC.numel,
        min_bytes=big,
        floor_ms=big / 20e6,
        bound="memory",
    )


def trials() -> tuple[Trial, ...]:
    """Returns four draws that passed."""
    leaf = LeafCheck(
        leaf="output",
        ratio_rms=0.92,
        ratio_max=2.4,
        limit_rms=3.0,
        limit_max=8.0,
        worst="[17, 2033]: candidate -1.2048, reference -1.2048, gold -1.2048",
        elements=SPEC.numel,
    )
    kinds = ("own", "own", "scaled", "structured")
    return tuple(make.make_trial(kind=kind, seed=9_000_017 * (i + 1), leaves=(leaf,)) for i, kind in enumerate(kinds))


def evaluated(candidate: Candidate, speedup: float, **changes: object) -> Evaluation:
    """Returns what was seen of a candidate that passed with this speedup over a reference of 4.2 ms."""
    timing = make.make_timing(
        speedup, candidate_ms=4.2 / speedup, candidate_p10_ms=4.1 / speedup, candidate_p90_ms=4.6 / speedup,
        reference_ms=4.2,
    )  # fmt: skip
    return make.make_evaluation(
        speedup, candidate_id=candidate.id, timings=(timing,), trials=trials(), wall_s=1.8, **changes
    )


class Story:
    """Attempts in a row, each from the one before unless it says otherwise."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.reference = make.make_candidate(language="torch", source=REFERENCE, author="task", rationale="the task")
        self.add(self.reference, None, None, 1.0, 1.0, "accepted", "it is the reference")

    def add(
        self,
        candidate: Candidate,
        parent: Candidate | None,
        option: str | None,
        predicted: float,
        effect: float | None,
        verdict: str,
        reason: str,
        **plan: object,
    ) -> Candidate:
        """Returns the candidate after it was attempted."""
        evaluation = evaluated(candidate, effect) if effect else self.failed(candidate)
        fields = {
            "index": len(self.attempts),
            "objective": "move fewer bytes",
            "hypothesis": "One pass over each row reads the inputs once and writes the output once.",
            "principle_ids": ("fuse-rows",) if parent else (),
            "option_id": option,
            "predicted_effect": predicted,
            "parent_id": parent.id if parent else None,
            **plan,
        }
        attempt = make.make_attempt(
            plan=make.make_plan(**fields),
            candidate=candidate,
            evaluation=evaluation,
            diagnosis=make.make_diagnosis(summary="Memory binds it: 17.8 of 20.0 GB/s."),
            verdict=verdict,
            reason=reason,
        )
        self.attempts.append(attempt)
        return candidate

    @staticmethod
    def failed(candidate: Candidate) -> Evaluation:
        failure = Failure(
            phase="build", message="k0.cpp:14: 'rsqrt' was not declared", detail="k0.cpp: In function 'k0':\n" * 12
        )
        return make.make_failed_evaluation(Status.COMPILE_ERROR, candidate_id=candidate.id, failure=failure)


def kernel(note: str, **schedule: int) -> Candidate:
    """Returns a candidate of the built-in author with this schedule."""
    knobs = {f"k0.{name}": value for name, value in schedule.items()}
    space = {
        name: KnobSpec(choices=(1, 2, 32, 64, 128), stage="tiling", principle_id="independent-partial-results", doc="")
        for name in knobs
    }
    return make.make_candidate(
        source=KERNEL.replace("<one>", f"<{note}>"), author="expert", schedule=knobs, schedule_space=space,
        rationale="One kernel that finishes each row before it touches the next.",
        not_covered=("aten.relu: no family",),
    )  # fmt: skip


@pytest.fixture
def finished() -> RunState:
    """A run that found something faster."""
    return finished_run()


def finished_run() -> RunState:
    """Returns a run that found something faster, with two rungs and a final measurement."""
    story = Story()
    chain = story.add(kernel("chain"), story.reference, "fuse.pointwise", 1.8, 1.42, "accepted", "1.42x over eager")
    story.add(kernel("bad"), story.reference, "fuse.rows", 2.6, None, "failed", "it does not build")
    rows = story.add(kernel("rows"), chain, "fuse.rows", 1.5, 2.05, "accepted", "1.44x over its parent")
    story.add(kernel("kept"), chain, "loops.split-reduction", 1.1, 1.31, "kept", "a second structure to tune")
    lanes = kernel("rows", lanes=64)
    story.add(kernel("rows", lanes=32), rows, "k0.lanes=32", 1.05, 2.01, "rejected", "no gain", stage="tiling")
    story.add(lanes, rows, "k0.lanes=64", 1.1, 2.31, "accepted", "1.13x over its parent", stage="tiling")
    threads = kernel("rows", lanes=64, threads=2)
    story.add(threads, lanes, "k0.threads=2", 1.6, 2.9, "accepted", "1.26x over its parent", stage="mapping")
    story.add(kernel("nt"), threads, "k0.stream=1", 1.3, 2.2, "rejected", "0.76x of its parent", stage="memory")
    final = FinalMeasured(candidate_id=threads.id, evaluation=evaluated(threads, 2.87, tier="attest"))
    compiled = Baseline(
        name="torch.compile", available=True, median_ms={"default": 2.4}, speedup_over_eager=1.75, low=1.7, high=1.81,
        setup_s=11.2,
    )  # fmt: skip
    missing = Baseline(name="torch.compile max-autotune", available=False, reason="needs a GPU")
    outcome = make.make_outcome(
        winner_id=threads.id, summary="2.87 times as fast as eager in fresh processes; all 4 draws within the limit."
    )
    return make.make_state(
        *story.attempts,
        started=make.make_run_started(
            task=make.make_task(name="rmsnorm_residual", source=REFERENCE, entry="/tasks/rmsnorm residual.py"),
            device=make.make_device(name="Xeon at 2.1 GHz", copy_gbps=20.0),
            config=make.make_config(budget_s=60.0, ladder=("eager", "torch.compile")),
            versions={"egg": "0.1.0", "torch": "2.13.0"},
        ),
        analyses=(rms_analysis(),),
        baselines=(make.make_baseline(median_ms={"default": 4.2}), compiled, missing),
        finals=(final,),
        outcome=outcome,
        spent_s=58.3,
    )


def started_run() -> RunState:
    """Returns a run of which nothing but the start is recorded."""
    return RunState(started=make.make_run_started())


def failed_run() -> RunState:
    """Returns a run whose outcome is that nothing was verified."""
    story = Story()
    bad = make.make_candidate(source="syntax error(")
    story.add(bad, story.reference, "fuse.rows", 2.0, None, "failed", "it does not build")
    outcome = make.make_outcome(
        winner_id="unknown", verified=False, faster=False, summary="The reference itself failed."
    )
    return make.make_state(*story.attempts, analyses=(), outcome=outcome)


def equal_run() -> RunState:
    """Returns a run in which the reference won, stopped by its budget."""
    story = Story()
    outcome = make.make_outcome(
        winner_id=story.reference.id, faster=False, summary="Nothing beat eager.", stopped_by="budget"
    )
    return make.make_state(*story.attempts, outcome=outcome, baselines=(make.make_baseline(),))


def two_workloads_run() -> RunState:
    """Returns the finished run with a second workload."""
    run = finished_run()
    names = ("short rows", "long rows")
    task = run.started.task.updated(workloads=tuple(make.make_workload(name=n) for n in names))
    evaluation = run.finals[0].evaluation
    timings = tuple(evaluation.timings[0].updated(workload=n) for n in names)
    final = run.finals[0].updated(evaluation=evaluation.updated(timings=timings))
    return run.updated(
        started=run.started.updated(task=task),
        analyses=tuple(rms_analysis(n) for n in names),
        finals=(final,),
    )


RUNS = {
    "finished": finished_run,
    "started": started_run,
    "failed": failed_run,
    "equal": equal_run,
    "two_workloads": two_workloads_run,
}


@pytest.fixture(params=RUNS, ids=list(RUNS))
def any_run(request: pytest.FixtureRequest) -> RunState:
    """Each kind of run in turn."""
    return RUNS[request.param]()
