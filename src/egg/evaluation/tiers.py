"""What each tier does: how many trials of which kind, how long it times, what each phase may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from egg.evaluation.correctness import trials
from egg.evaluation.correctness.trials import TrialKind
from egg.evaluation.timing.figures import Method
from egg.evaluation.timing.interleave import Pace
from egg.evaluation.workers.isolation import GUARANTEES
from egg.schema.evaluation import Phase, Tier


@dataclass(frozen=True)
class TierPlan:
    """The work of one tier."""

    trials: tuple[TrialKind, ...]
    check_s: float
    """Seconds for one workload, after which trials beyond the task's own draws are left out, and said so."""
    pace: Pace
    fresh: bool
    """True for new interpreters."""
    pool: int
    """Sets of inputs that timed calls take in turn."""
    method: Method
    """Whose clock counts."""
    proof_calls: int
    """Timed calls whose outputs are looked at, at least; drawn in secret."""
    proof_whole: int
    """Of them, those of which every element goes before the oracle."""


PLANS: dict[Tier, TierPlan] = {
    "search": TierPlan(
        trials=trials.SEARCH,
        check_s=5.0,
        pace=Pace(
            pairs=10, least_pairs=6, claim_pairs=6, block_s=0.002, longest_block_s=0.05, block_calls=5, budget_s=1.0,
            warm_up_s=0.02, warm_up_limit_s=0.2, warm_up_calls=5,
        ),
        fresh=False,
        pool=3,
        method="own",
        proof_calls=8,
        proof_whole=0,
    ),
    "attest": TierPlan(
        trials=trials.ATTEST,
        check_s=20.0,
        pace=Pace(
            pairs=20, least_pairs=6, claim_pairs=10, block_s=0.02, longest_block_s=0.2, block_calls=5, budget_s=6.0,
            warm_up_s=0.2, warm_up_limit_s=2.0, warm_up_calls=10,
        ),
        fresh=True,
        pool=4,
        method="caller",
        proof_calls=128,
        proof_whole=2,
    ),
}  # fmt: skip


def with_draws(plan: TierPlan, draws: Sequence[str]) -> TierPlan:
    """Returns the plan with a trial of each of these draws that no candidate may be judged without."""
    values = {name: "own" if name.startswith("own") else name for name in draws}
    more = (TrialKind(name, values=values[name], state="redrawn", needed=True) for name in draws)
    return replace(plan, trials=(*plan.trials, *more))


def with_large(plan: TierPlan) -> TierPlan:
    """Returns the plan with a trial past 2^31 elements."""
    return replace(plan, trials=(*plan.trials, *trials.LARGE))


def _deadlines() -> dict[Phase, float]:
    return {"import": 120.0, "construct": 120.0, "build": 120.0, "check": 120.0, "time": 180.0, "transfer": 60.0}


@dataclass(frozen=True)
class Limits:
    """What a candidate may use."""

    deadline_s: dict[Phase, float] = field(default_factory=_deadlines)
    """Seconds for each request of a phase; what is left of the allowance counts where it is less."""
    reference_s: float = 300.0
    """Seconds for each request to a reference worker."""
    baseline_build_s: float = 180.0
    """Seconds for the first call of a baseline that compiles."""
    memory_share: float = 0.8
    """Share of the machine's memory that a worker may take."""
    pool_bytes: int = 256 * 2**20
    """Memory that the inputs of the timed calls may take together."""
    readable: tuple[Path, ...] = ()
    """What a candidate may read besides the system, Python and its tools: a library of its author's."""
    required_isolation: tuple[str, ...] = tuple(GUARANTEES)
    """Guarantees without which nothing is attested. Whoever leaves one out publishes figures that rest on trust; the
    layers that were missing stand in the result."""
    hold_bytes: int = 256 * 2**20
    """Memory that the outputs of one block of timed calls may take together."""
    gpu_factor: int = 32
    """Times both, where they lie in the memory of a GPU."""

    @classmethod
    def trusting(cls) -> Limits:
        """Returns limits for code that the caller trusts: whatever isolation the machine offers, and none required."""
        return cls(required_isolation=())

    def memory_bytes(self) -> int:
        """Returns the private memory of the host that a worker may take."""
        return int(self.memory_share * psutil.virtual_memory().total)

    def pool_on(self, target: str) -> int:
        """Returns the memory for the inputs of timed calls on a target."""
        return self.pool_bytes * (self.gpu_factor if target == "cuda" else 1)

    def hold_on(self, target: str) -> int:
        """Returns the memory for the outputs of one block on a target."""
        return self.hold_bytes * (self.gpu_factor if target == "cuda" else 1)
