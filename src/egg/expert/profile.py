"""What binds a candidate, read from its measurements."""

from __future__ import annotations

from collections.abc import Sequence

from egg.schema.analysis import Analysis
from egg.schema.device import Device
from egg.schema.evaluation import Evaluation, Status
from egg.schema.run import Diagnosis

BUILD_FAILED = (Status.COMPILE_ERROR,)
NEAR_FLOOR = 1.25
"""Up to this multiple of the roofline floor, there is nothing left to name."""
MOSTLY = 0.5
"""A share of the time from which on something binds."""


def diagnose(analyses: Sequence[Analysis], device: Device, evaluation: Evaluation) -> Diagnosis:
    """Returns the bottleneck in one sentence, with the figures that say so."""
    if evaluation.status is not Status.PASSED or evaluation.candidate_ms is None:
        return _failed(evaluation)
    spent_ms = evaluation.candidate_ms
    floor_ms = sum(a.floor_ms for a in analyses)
    library = evaluation.profile.get("library_share_pct", 0.0) / 100
    launch_ms = evaluation.profile.get("aten_calls", 0.0) * device.launch_us * 1e-3 * len(analyses)
    evidence = {
        "candidate_ms": spent_ms,
        "floor_ms": floor_ms,
        "library_share_pct": 100 * library,
        "launch_ms": launch_ms,
    }
    times = f"{spent_ms:.3g} ms against a floor of {floor_ms:.3g} ms"
    if spent_ms <= NEAR_FLOOR * floor_ms:
        return Diagnosis(bottleneck="none", summary=f"At the roofline: {times}.", evidence=evidence)
    if launch_ms >= MOSTLY * spent_ms:
        said = f"Calls of operators take about {launch_ms:.3g} of {spent_ms:.3g} ms: run more in one native call."
        return Diagnosis(bottleneck="launch", summary=said, evidence=evidence)
    if library >= MOSTLY:
        said = f"Library operators take {100 * library:.0f} % of {times}: do less in them, or fuse around them."
        return Diagnosis(bottleneck="library", summary=said, evidence=evidence)
    bound = "compute" if all(a.bound == "compute" for a in analyses) else "memory"
    how = "arithmetic" if bound == "compute" else "moving bytes"
    return Diagnosis(bottleneck=bound, summary=f"Bound by {how}: {times}.", evidence=evidence)


def _failed(evaluation: Evaluation) -> Diagnosis:
    failure = evaluation.failure
    said = failure.message if failure is not None else "no message"
    if evaluation.status in BUILD_FAILED:
        return Diagnosis(bottleneck="build", summary=f"It does not build: {said}")
    return Diagnosis(bottleneck="correctness", summary=f"{evaluation.status}: {said}")
