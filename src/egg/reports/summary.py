"""What every report says about a run, worked out once from its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from egg.schema.evaluation import UNKNOWN, Baseline, Evaluation
from egg.schema.run import Attempt, RunState

EAGER = "eager"
ESTIMATE = "search estimate"
"""What a figure is called that came from the tier `search`: it steers, and is never published as a result."""
PATH_NOTE = "measured effects and times of the path are search estimates; the ladder holds the final measurement"
FLOOR_NOISE_PCT = 10.0
"""A time may undercut the floor by as much, since both are measured."""
Result = Literal["faster", "equal", "failed", "unfinished"]
"""faster: a verified gain over eager; equal: verified, no gain; failed: no verified winner; unfinished: no outcome."""


@dataclass(frozen=True)
class Interval:
    """A ratio with its 95 % interval; the ends are None where they were not measured."""

    value: float
    low: float | None = None
    high: float | None = None

    def over(self, other: Interval) -> Interval:
        """Returns the quotient with the widest interval that both intervals allow."""
        low = self.low / other.high if self.low is not None and other.high else None
        high = self.high / other.low if self.high is not None and other.low else None
        return Interval(self.value / other.value, low, high)


ITSELF = Interval(1.0, 1.0, 1.0)
"""Of a thing over itself, which needs no measurement."""


@dataclass(frozen=True)
class Rung:
    """One baseline and how the winner stands against it."""

    name: str
    median_ms: float | None
    """Sum over the workloads; for eager in turns with the winner, where that was timed. None where not available."""
    reason: str
    """Why it is not available; empty otherwise."""
    over_eager: Interval | None
    speedup: Interval | None
    """Of the winner over this baseline; above 1 means that the winner is faster."""
    method: str = UNKNOWN
    """Whose clock gave the median, as in `Timing`."""

    @property
    def how(self) -> str:
        """The clock, and how the speedup over it was reached."""
        return self.method if self.name == EAGER else f"{self.method}, by way of eager"


@dataclass(frozen=True)
class Step:
    """One accepted move on the way from the reference to the winner."""

    attempt: Attempt
    measured_effect: float | None
    """Speedup over the parent, by the search tier's timings; None for the reference."""
    others: tuple[Attempt, ...]
    """What else was tried from here."""


@dataclass(frozen=True)
class Summary:
    """A run in the few figures that matter. A figure that was not measured is None."""

    state: RunState
    result: Result
    winner: Attempt | None
    """The winner, or the best so far while there is no outcome."""
    evaluation: Evaluation | None
    """The winner's final measurement; its search measurement where there is no final one."""
    over_eager: Interval | None
    """Speedup of the winner over the reference, both timed in turns; 1 where the winner is the reference."""
    rungs: tuple[Rung, ...]
    best_rung: Rung | None
    """The fastest baseline."""
    floor_ms: float | None
    steps: tuple[Step, ...]
    headline: str

    @property
    def winner_is_reference(self) -> bool:
        """True when no candidate was better than the task as it stands."""
        return self.winner is not None and self.winner.plan.parent_id is None

    @property
    def attested(self) -> bool:
        """True where the figures come from a final measurement: fresh processes, the full trial plan."""
        seen = self.evaluation
        return seen is not None and seen.tier == "attest" and seen.speedup is not None and not seen.barred

    @property
    def estimate_note(self) -> str:
        """What to write beside a figure that was not attested; empty where there is none or it was."""
        return f" ({ESTIMATE})" if self.evaluation is not None and not self.attested else ""

    @property
    def candidate_ms(self) -> float | None:
        """Median of the winner, summed over the workloads."""
        return None if self.evaluation is None else self.evaluation.candidate_ms

    @property
    def over_best(self) -> Interval | None:
        """Speedup of the winner over the fastest baseline."""
        return None if self.best_rung is None else self.best_rung.speedup

    @property
    def floor_share_pct(self) -> float | None:
        """How much of the roofline the winner reaches, in per cent."""
        if self.floor_ms is None or not self.candidate_ms:
            return None
        return 100.0 * self.floor_ms / self.candidate_ms

    @property
    def floor_note(self) -> str:
        """What the floor says about the winner, in a few words; empty where one of them is not known."""
        share = self.floor_share_pct
        if share is None:
            return ""
        if share > 100.0 + FLOOR_NOISE_PCT:
            return "above the time of a call: the device is faster than it was measured"
        return f"{min(share, 100.0):.0f} % of it reached"


def summarise(state: RunState) -> Summary:
    """Returns the summary of a run, finished or not."""
    winner = _winner(state)
    evaluation = _evaluation(state, winner)
    ours = None if winner is None or evaluation is None else _over_eager_of(winner, evaluation)
    rungs = rungs_of(state.baselines, evaluation, ours)
    best_rung = max((r for r in rungs if r.over_eager), key=_rung_rank, default=None)
    result = _result(state)
    return Summary(
        state=state,
        result=result,
        winner=winner,
        evaluation=evaluation,
        over_eager=ours,
        rungs=rungs,
        best_rung=best_rung,
        floor_ms=sum(a.floor_ms for a in state.analyses) if state.analyses else None,
        steps=_steps(state, winner),
        headline=_headline(result, ours, best_rung, len(state.attempts) > 1, _refused(state)),
    )


def rungs_of(
    baselines: Sequence[Baseline], evaluation: Evaluation | None, over_eager: Interval | None
) -> tuple[Rung, ...]:
    """Returns each baseline with how a candidate stands against it that is `over_eager` as fast as eager."""
    return tuple(_rung(b, evaluation, over_eager) for b in baselines)


def speedup_of(evaluation: Evaluation) -> Interval | None:
    """Returns the speedup over the reference with its interval; None where nothing was timed."""
    if evaluation.speedup is None:
        return None
    return Interval(evaluation.speedup, evaluation.speedup_low, evaluation.speedup_high)


def method_of(evaluation: Evaluation) -> str:
    """Returns the clocks that its figures come from; `unknown` where nothing was timed."""
    return " and ".join(dict.fromkeys(t.method for t in evaluation.timings)) or UNKNOWN


def title_of(attempt: Attempt) -> str:
    """Returns the short name of an attempt: its option, or its objective where the author chose freely."""
    if attempt.plan.parent_id is None:
        return "reference"
    title = attempt.plan.option_id or attempt.plan.objective
    return f"{title} (repaired)" if attempt.repaired_from else title


def _winner(state: RunState) -> Attempt | None:
    if state.outcome is None:
        return state.best()
    return next((a for a in state.attempts if a.candidate.id == state.outcome.winner_id), None)


def _evaluation(state: RunState, winner: Attempt | None) -> Evaluation | None:
    if winner is None:
        return None
    finals = [f.evaluation for f in state.finals if f.candidate_id == winner.candidate.id]
    return finals[-1] if finals else winner.evaluation


def _over_eager_of(winner: Attempt, evaluation: Evaluation) -> Interval | None:
    """Returns the winner's speedup. The reference against itself measures the noise and nothing else."""
    measured = speedup_of(evaluation)
    return ITSELF if winner.plan.parent_id is None and measured is not None else measured


def _rung(baseline: Baseline, evaluation: Evaluation | None, ours: Interval | None) -> Rung:
    over_eager = _over_eager(baseline)
    return Rung(
        name=baseline.name,
        median_ms=_median_ms(baseline, evaluation),
        reason=baseline.reason if not baseline.available else "",
        over_eager=over_eager,
        speedup=ours.over(over_eager) if ours and over_eager else None,
        method=_method(baseline, evaluation),
    )


def _median_ms(baseline: Baseline, evaluation: Evaluation | None) -> float | None:
    if not baseline.available or not baseline.median_ms:
        return None
    if baseline.name == EAGER and evaluation is not None and evaluation.timings:
        return sum(t.reference_ms for t in evaluation.timings)
    return sum(baseline.median_ms.values())


def _method(baseline: Baseline, evaluation: Evaluation | None) -> str:
    if baseline.name == EAGER and evaluation is not None and evaluation.timings:
        return method_of(evaluation)
    return baseline.method


def _over_eager(baseline: Baseline) -> Interval | None:
    if not baseline.available:
        return None
    if baseline.name == EAGER:
        return ITSELF
    if baseline.speedup_over_eager is None:
        return None
    return Interval(baseline.speedup_over_eager, baseline.low, baseline.high)


def _rung_rank(rung: Rung) -> float:
    return rung.over_eager.value if rung.over_eager else 0.0


def _result(state: RunState) -> Result:
    if state.outcome is None:
        return "unfinished"
    if not state.outcome.verified:
        return "failed"
    return "faster" if state.outcome.faster else "equal"


def _refused(state: RunState) -> bool:
    """Returns whether something was measured in the finals from which nothing may be claimed."""
    others = [f for f in state.finals if state.outcome is None or f.candidate_id != state.outcome.winner_id]
    return any(f.evaluation.not_claimed for f in others)


def _headline(result: Result, ours: Interval | None, best: Rung | None, stepped: bool, refused: bool) -> str:
    gain = f"{ours.value:.2f}× as fast as eager" if ours else None
    match result:
        case "unfinished":
            return f"Not finished: {gain} so far ({ESTIMATE})" if gain else "Not finished: nothing measured yet"
        case "failed":
            return "No verified winner"
        case "equal":
            if refused:
                return "No speedup is claimed"
            return "Nothing to gain over eager" if stepped else "As it was: no step applies to this task"
        case "faster":
            return f"{gain}{_against_best(best)}" if gain else "Faster than eager"


def _against_best(best: Rung | None) -> str:
    if best is None or best.speedup is None or best.name == EAGER:
        return ""
    ratio, low, high = best.speedup.value, best.speedup.low, best.speedup.high
    if low is not None and high is not None and low <= 1.0 <= high:
        return f", level with {best.name}"
    return f", {ratio:.2f}× as fast as {best.name}" if ratio > 1 else f", but only {ratio:.2f}× as fast as {best.name}"


def _steps(state: RunState, winner: Attempt | None) -> tuple[Step, ...]:
    first: dict[str, Attempt] = {}
    for attempt in state.attempts:
        first.setdefault(attempt.candidate.id, attempt)
    path: list[Attempt] = []
    at = winner
    while at is not None and at not in path:
        path.append(at)
        at = first.get(at.plan.parent_id) if at.plan.parent_id else None
    path.reverse()
    taken = {attempt.plan.index for attempt in path}
    return tuple(_step(state.attempts, parent, at, taken) for parent, at in zip((None, *path), path, strict=False))


def _step(attempts: Sequence[Attempt], parent: Attempt | None, attempt: Attempt, taken: set[int]) -> Step:
    measured = attempt.effect / parent.effect if parent and attempt.effect and parent.effect else None
    others = [a for a in attempts if a.plan.parent_id == attempt.candidate.id and a.plan.index not in taken]
    return Step(attempt, measured, tuple(others))
