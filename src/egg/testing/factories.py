"""One function a record: a small valid value, with any field replaced by keyword."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from egg.schema.analysis import Analysis, OpCost
from egg.schema.candidate import Candidate, KnobSpec
from egg.schema.device import Device
from egg.schema.evaluation import Baseline, Evaluation, Failure, LeafCheck, Status, Timing, Trial
from egg.schema.graph import Graph, GraphInput, Node, Ref, TensorSpec, Value
from egg.schema.plan import Option, StagePlan
from egg.schema.principle import Evidence, Predicate, Principle
from egg.schema.run import (
    Analyzed,
    Attempt,
    AttemptFinished,
    BaselineMeasured,
    Config,
    Diagnosis,
    Event,
    FinalMeasured,
    Outcome,
    RunFinished,
    RunStarted,
    RunState,
    Usage,
    fold,
)
from egg.schema.task import InputLeaf, Task, Workload
from egg.schema.verification import Verification

_SPEC = TensorSpec(shape=(4, 8), dtype="float32")


def make_workload(**changes: Any) -> Workload:
    """Returns one workload with a single (4, 8) float32 input."""
    return Workload(inputs=(InputLeaf(path=(0,), kind="tensor", spec=_SPEC),)).updated(**changes)


def make_task(**changes: Any) -> Task:
    """Returns a file task with one workload."""
    task = Task(
        name="add_one",
        kind="file",
        entry="/tasks/add_one.py",
        class_name="Model",
        source="class Model: ...\n",
        workloads=(make_workload(),),
    )
    return task.updated(**changes)


def make_device(**changes: Any) -> Device:
    """Returns a CPU with two cores and AVX2."""
    device = Device(
        name="a CPU",
        kind="cpu",
        cores=2,
        vector_bytes=32,
        isa="avx2",
        copy_gbps=10.0,
        cache_gbps=100.0,
        peak_tflops={"float32": 0.1},
        launch_us=2.0,
        l1_bytes=32_768,
        l2_bytes=1_048_576,
        l3_bytes=33_554_432,
        source="measured",
    )
    return device.updated(**changes)


def make_graph(**changes: Any) -> Graph:
    """Returns the graph of `x + 1`."""
    node = Node(op="aten.add.Tensor", args=(Ref(ref="x"), 1), outputs=(Value(name="add", spec=_SPEC),))
    entry = GraphInput(name="x", kind="input", path=(0,), spec=_SPEC)
    return Graph(inputs=(entry,), nodes=(node,), returns=Ref(ref="add")).updated(**changes)


def make_analysis(**changes: Any) -> Analysis:
    """Returns the analysis of `x + 1` on (4, 8) float32."""
    cost = OpCost(
        name="add",
        op="aten.add.Tensor",
        flops=32,
        bytes=256,
        arithmetic_intensity=0.125,
        floor_ms=2.56e-5,
        bound="launch",
    )
    analysis = Analysis(
        task_hash=make_task().content_hash,
        workload="default",
        graph=make_graph(),
        ops=(cost,),
        flops=32,
        min_bytes=256,
        arithmetic_intensity=0.125,
        floor_ms=2.56e-5,
        bound="launch",
        facts={"nodes": 1},
    )
    return analysis.updated(**changes)


def make_principle(**changes: Any) -> Principle:
    """Returns a principle of the structure stage."""
    principle = Principle(
        id="fuse",
        stage="structure",
        title="Fuse what passes through memory",
        applies_when=(Predicate(fact="nodes", op=">", value=1),),
        action="Put neighbouring pointwise operators into one loop.",
        moves=("fuse",),
        expects="bytes down",
        evidence=(Evidence(what="a chain of two", device="a CPU", date="2026-01-01", gain=1.5),),
    )
    return principle.updated(**changes)


def make_knob(**changes: Any) -> KnobSpec:
    """Returns a knob of the tiling step with three choices."""
    knob = KnobSpec(choices=(8, 16, 32), stage="tiling", principle_id="tile", doc="rows of a block")
    return knob.updated(**changes)


def make_candidate(**changes: Any) -> Candidate:
    """Returns a candidate without a schedule; another `source` makes another id."""
    candidate = Candidate(
        language="cpp", source="class ModelNew: ...\n", author="a test", rationale="because it is a test"
    )
    return candidate.updated(**changes)


def make_option(**changes: Any) -> Option:
    """Returns a structure option that promises 1.3."""
    option = Option(
        id="fuse", stage="structure", principle_id="fuse", move="fuse", title="fuse the chain", predicted_effect=1.3
    )
    return option.updated(**changes)


def make_plan(**changes: Any) -> StagePlan:
    """Returns the plan of the first attempt."""
    plan = StagePlan(
        index=0,
        stage="structure",
        objective="less work",
        hypothesis="it moves fewer bytes",
        principle_ids=("fuse",),
        predicted_effect=1.0,
        parent_id=None,
        allowance_s=30.0,
    )
    return plan.updated(**changes)


def make_trial(**changes: Any) -> Trial:
    """Returns a trial that passed."""
    leaf = LeafCheck(leaf="output", ratio_rms=1.0, ratio_max=1.5, limit_rms=4.0, limit_max=8.0, elements=32)
    return Trial(workload="default", kind="own", seed=1, passed=True, leaves=(leaf,)).updated(**changes)


def make_timing(speedup: float = 1.0, spread: float = 0.01, **changes: Any) -> Timing:
    """Returns a timing with this speedup over the reference; the interval is `spread` of it to either side."""
    reference_ms = 1.0
    timing = Timing(
        workload="default",
        method="host",
        candidate_ms=reference_ms / speedup,
        candidate_p10_ms=reference_ms / speedup * 0.98,
        candidate_p90_ms=reference_ms / speedup * 1.05,
        reference_ms=reference_ms,
        speedup=speedup,
        speedup_low=speedup * (1 - spread),
        speedup_high=speedup * (1 + spread),
        blocks=20,
        calls=200,
        setup_ms=900.0,
    )
    return timing.updated(**changes)


def make_evaluation(speedup: float = 1.0, spread: float = 0.01, **changes: Any) -> Evaluation:
    """Returns an evaluation that passed with this speedup over the reference."""
    evaluation = Evaluation(
        candidate_id="0" * 16,
        tier="search",
        status=Status.PASSED,
        trials=(make_trial(),),
        timings=(make_timing(speedup, spread),),
        profile={"library_share_pct": 0.0},
        environment={"threads": "2"},
        wall_s=1.0,
    )
    return evaluation.updated(**changes)


def make_failed_evaluation(status: Status = Status.WRONG_VALUE, **changes: Any) -> Evaluation:
    """Returns an evaluation that did not pass."""
    failure = Failure(phase="check", message="the outputs differ")
    evaluation = Evaluation(candidate_id="0" * 16, tier="search", status=status, failure=failure, wall_s=0.5)
    return evaluation.updated(**changes)


def make_baseline(**changes: Any) -> Baseline:
    """Returns the eager rung."""
    baseline = Baseline(name="eager", available=True, median_ms={"default": 1.0}, speedup_over_eager=1.0, setup_s=0.1)
    return baseline.updated(**changes)


def make_config(**changes: Any) -> Config:
    """Returns a configuration for two threads with the eager rung alone and no budget."""
    return Config(threads=2, ladder=("eager",), budget_s=None).updated(**changes)


def make_diagnosis(**changes: Any) -> Diagnosis:
    """Returns a diagnosis that blames memory."""
    return Diagnosis(bottleneck="memory", summary="memory binds it", evidence={"gbps": 9.0}).updated(**changes)


def make_attempt(**changes: Any) -> Attempt:
    """Returns the accepted attempt 0; its evaluation names its candidate unless `evaluation` is given."""
    candidate = changes.get("candidate", make_candidate())
    attempt = Attempt(
        plan=make_plan(),
        candidate=candidate,
        evaluation=make_evaluation(candidate_id=candidate.id),
        diagnosis=make_diagnosis(),
        verdict="accepted",
        reason="it is the first",
        usage=Usage(wall_s=1.0),
    )
    return attempt.updated(**changes)


def make_outcome(**changes: Any) -> Outcome:
    """Returns the outcome of a run that was done and found something faster."""
    outcome = Outcome(
        winner_id=make_candidate().id, verified=True, faster=True, summary="1.50x over eager", stopped_by="done"
    )
    return outcome.updated(**changes)


def make_run_started(**changes: Any) -> RunStarted:
    """Returns the first event of a run."""
    started = RunStarted(
        run_id="run-1",
        started="2026-01-01T00:00:00Z",
        task=make_task(),
        device=make_device(),
        config=make_config(),
        versions={"egg": "0"},
    )
    return started.updated(**changes)


def make_final(**changes: Any) -> FinalMeasured:
    """Returns a final measurement of the default candidate."""
    name = changes.get("candidate_id", make_candidate().id)
    final = FinalMeasured(candidate_id=name, evaluation=make_evaluation(1.5, candidate_id=name, tier="attest"))
    return final.updated(**changes)


def make_events() -> tuple[Event, ...]:
    """Returns one event of each kind, in an order that folds."""
    return (
        make_run_started(),
        Analyzed(analyses=(make_analysis(),), wall_s=0.5),
        BaselineMeasured(baseline=make_baseline(), wall_s=2.0),
        AttemptFinished(attempt=make_attempt()),
        make_final(),
        RunFinished(outcome=make_outcome()),
    )


def make_state(*attempts: Attempt, **changes: Any) -> RunState:
    """Returns a state that is analyzed and has these attempts; `changes` replace fields of the state."""
    events: Iterable[Event] = (
        make_run_started(),
        Analyzed(analyses=(make_analysis(),), wall_s=0.0),
        *(AttemptFinished(attempt=attempt) for attempt in attempts),
    )
    state: RunState | None = None
    for event in events:
        state = fold(state, event)
    assert state is not None
    return state.updated(**changes)


def make_verification(**changes: Any) -> Verification:
    """Returns the verification of a candidate that passed the tier attest and is 1.5 times as fast as eager."""
    found = Verification(
        task="add one",
        task_hash="1" * 16,
        workloads=("default",),
        training=True,
        candidate="mine.py",
        entry="ModelNew",
        evaluation=make_evaluation(1.5, tier="attest"),
        baselines=(make_baseline(name="torch.compile", speedup_over_eager=1.2, low=1.1, high=1.3),),
        floor_ms=0.1,
        device="a CPU",
        versions={"egg": "0"},
    )
    return found.updated(**changes)
