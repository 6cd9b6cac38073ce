"""What was seen when a candidate ran."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from egg.schema.base import Record


class Status(StrEnum):
    """The outcome of one evaluation. Everything but PASSED is a fault of the candidate."""

    PASSED = "PASSED"
    REJECTED = "REJECTED"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    WRONG_SHAPE = "WRONG_SHAPE"
    WRONG_DTYPE = "WRONG_DTYPE"
    WRONG_VALUE = "WRONG_VALUE"
    TIMEOUT = "TIMEOUT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"


Phase = Literal["import", "construct", "build", "check", "time", "transfer"]
Tier = Literal["search", "attest"]
"""`search` steers; only what `attest` gave, with fresh workers and the caller's own clock, is published."""
UNKNOWN = "unknown"
"""Stands for what a machine does not tell; never taken for good."""


BUSY_PCT = 10.0
"""Of a machine's processors: where others take more while something is timed, its times in ms say less than ratios."""


class Failure(Record):
    """Why a candidate did not pass, with a witness."""

    phase: Phase
    message: str
    """One line."""
    detail: str = ""
    """Compiler output or traceback, head and tail, at most 8,000 characters."""


class LeafCheck(Record):
    """One output leaf of one trial, judged against the float64 oracle."""

    leaf: str
    """Where it sits: `output`, `output[1]`, `buffer bn.running_mean`, `input args[0]`."""
    ratio_rms: float
    """rms(candidate - gold) over the reference's own rms error (at least eps times rms of gold)."""
    ratio_max: float
    """Largest element error over its allowance before K_max."""
    limit_rms: float
    limit_max: float
    worst: str = ""
    """Index, candidate, reference and gold at the worst element."""
    elements: int
    by_distribution: bool = False
    """True where the values are random, and not compared one by one; the ratios are then 0."""


class Trial(Record):
    """One comparison of all outputs for one draw of the inputs."""

    workload: str
    kind: str
    """How the inputs were drawn: `own`, `scaled`, ..."""
    seed: int
    passed: bool
    leaves: tuple[LeafCheck, ...]
    message: str = ""


class Timing(Record):
    """Interleaved timing of the candidate against the reference on one workload."""

    workload: str
    method: str
    """`caller`: the trusted process's clock around whole blocks; `host`: the workers' clock around single calls;
    `event`: the device's events. Never compared with another method."""
    candidate_ms: float
    """Median over the calls, in milliseconds."""
    candidate_p10_ms: float
    candidate_p90_ms: float
    reference_ms: float
    """Median of the reference in the same interleaved blocks."""
    speedup: float
    """Median over block pairs of reference time / candidate time."""
    speedup_low: float
    """Lower end of the 95 % bootstrap interval over block pairs."""
    speedup_high: float
    blocks: int
    calls: int
    """Timed calls of the candidate."""
    setup_ms: float
    """Import, build, construction and first call; never part of the figures above."""
    reference_p10_ms: float | None = None
    reference_p90_ms: float | None = None
    discarded: int = 0
    """Pairs of blocks that did not count, since the device ran slowly for reasons of its own."""
    no_claim: str = ""
    """Why nothing may be claimed from the figures; empty where something may."""
    launch_bound: bool = False
    """True where the device works for less than 20 us a call: the figures are mostly the way to the device."""
    graph_ms: float | None = None
    """For a launch-bound call: the same replayed from a graph, caches flushed, input copies left out."""
    reference_graph_ms: float | None = None
    chained: bool = False
    """True where the inputs of a timed call depended on the output of the call before."""
    checked_calls: int = 0
    """Timed calls whose outputs were held against the reference's on the same inputs."""
    others_pct: float | None = None
    """Share of the machine's processors that neither side took meanwhile, but others; None where that is not known."""


class KernelShare(Record):
    """One kernel or operator that really ran, and whose it is."""

    name: str
    owner: Literal["candidate", "library", "aten", "unknown"]
    """`candidate`: compiled or written by it; `library`: a vendor's (cuBLAS, oneDNN, ...); `aten`: PyTorch's own."""
    share_pct: float
    """Of the time of a call."""
    calls: float
    """Launches in one call."""
    used: bool | None = None
    """Whether the result changes when what it wrote is spoilt; None where that was not tried."""


class Basis(Record):
    """What the figures of an evaluation rest on. What could not be read is `unknown`."""

    policy: str
    """Precision policy that the candidate was judged by."""
    timing_method: str = UNKNOWN
    """`caller`: the trusted process's own clock around whole blocks; `host`: the worker's clock; `event`: the device's;
    `host, held to caller`: the worker's where calls are short, confirmed by the trusted process's clock.
    Figures of different methods are never divided by one another."""
    noise_floor_pct: float | None = None
    """How far from 1 the reference timed against itself reaches, by the clock of the figures; None where unknown."""
    isolation: tuple[str, ...] = ()
    """Layers that were active around the candidate, by name, strongest last."""
    missing_isolation: tuple[str, ...] = ()
    """Layers that this machine does not offer, each with the reason."""
    barred: str = ""
    """Why the audit barred the task, whose check trivial answers pass; empty where it did not."""
    hashes: dict[str, str] = Field(default_factory=dict)
    """Of `candidate`, `task`, `harness` (the text of this package's evaluation code)."""


class Evaluation(Record):
    """Everything seen about one candidate."""

    candidate_id: str
    tier: Tier
    status: Status
    failure: Failure | None = None
    trials: tuple[Trial, ...] = ()
    timings: tuple[Timing, ...] = ()
    """One a workload, under PASSED only."""
    findings: tuple[str, ...] = ()
    """Integrity findings: what was refused or looked odd."""
    skipped: tuple[str, ...] = ()
    """Trials that make no sense for the task, or that time did not allow: workload, kind, reason."""
    profile: dict[str, float] = Field(default_factory=dict)
    """Metrics by name with unit in the name, such as `library_share_pct`, `kernel0_ms`."""
    kernels: tuple[KernelShare, ...] = ()
    """What ran, largest share first; under PASSED only."""
    basis: Basis | None = None
    """None in records that are older than this field."""
    environment: dict[str, str] = Field(default_factory=dict)
    wall_s: float

    @model_validator(mode="after")
    def _figures_only_when_passed(self) -> Self:
        if self.status is Status.PASSED:
            if self.failure is not None or not self.timings or not self.trials:
                raise ValueError("PASSED needs trials and timings, and no failure")
        elif self.failure is None or self.timings or self.profile:
            raise ValueError(f"{self.status} needs a failure, and neither timings nor a profile")
        return self

    @property
    def authorship(self) -> Literal["own", "library", "mixed", "unknown"]:
        """Whose work a call is: `own` or `library` from nine tenths of the kernels' time on, `mixed` between.

        `library` includes PyTorch's operators. A kernel that the result does not need is nobody's work.
        """
        counted = [k for k in self.kernels if k.owner != "unknown" and k.used is not False]
        total = sum(k.share_pct for k in counted)
        if total <= 0:
            return "unknown"
        own = sum(k.share_pct for k in counted if k.owner == "candidate") / total
        return "own" if own >= 0.9 else "library" if own <= 0.1 else "mixed"

    @property
    def barred(self) -> str:
        """Why the audit barred the task, so that passing shows nothing; empty where it did not."""
        return self.basis.barred if self.basis is not None else ""

    @property
    def not_claimed(self) -> str:
        """Why no speedup may be claimed from the figures; empty where one may."""
        if self.barred:
            return f"barred: {self.barred}"
        return next((t.no_claim for t in self.timings if t.no_claim), "")

    @property
    def speedup(self) -> float | None:
        """Geometric mean over workloads of the speedup over the reference; None unless PASSED."""
        return _geometric_mean([t.speedup for t in self.timings])

    @property
    def speedup_low(self) -> float | None:
        """The same of the lower ends of the intervals."""
        return _geometric_mean([t.speedup_low for t in self.timings])

    @property
    def speedup_high(self) -> float | None:
        """The same of the upper ends of the intervals."""
        return _geometric_mean([t.speedup_high for t in self.timings])

    @property
    def candidate_ms(self) -> float | None:
        """Sum over workloads of the candidate's median; None unless PASSED."""
        return sum(t.candidate_ms for t in self.timings) if self.timings else None


class Baseline(Record):
    """One rung of the ladder that a candidate is held against."""

    name: str
    """`eager`, `torch.compile`, ..."""
    available: bool
    reason: str = ""
    """Why it is not available."""
    median_ms: dict[str, float] = Field(default_factory=dict)
    """By workload."""
    method: str = UNKNOWN
    """Whose clock gave the figures, as in `Timing`; `unknown` in older records."""
    band_ms: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """By workload, between which times eight of ten calls lay."""
    flags: dict[str, str] = Field(default_factory=dict)
    """PyTorch's settings under which it was timed, the same as eager's."""
    speedup_over_eager: float | None = None
    """Geometric mean over workloads, interleaved with eager."""
    low: float | None = None
    high: float | None = None
    setup_s: float = 0.0
    """Build and warm-up seconds."""
    others_pct: float | None = None
    """As in `Timing`, the largest over workloads."""


def _geometric_mean(values: list[float]) -> float | None:
    from math import exp, log

    return exp(sum(map(log, values)) / len(values)) if values else None
