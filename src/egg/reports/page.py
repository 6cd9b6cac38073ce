"""One run as one self-contained HTML page: no script, no request, charts as inline SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import egg
from egg.reports import charts, codeview, figures, graphview
from egg.reports.basis import foundation, foundation_rows
from egg.reports.summary import PATH_NOTE, Interval, Step, Summary, speedup_of, summarise, title_of
from egg.schema.evaluation import LeafCheck, Trial
from egg.schema.principle import STAGES, Principle
from egg.schema.run import Attempt, RunState

_VERDICT_WORDS = {
    "accepted": "new best",
    "kept": "kept as a second structure",
    "rejected": "no gain",
    "failed": "failed",
}


def page(state: RunState, principles: Iterable[Principle] = ()) -> str:
    """Returns the report of a run as HTML, finished or not; `principles` give the ids their titles."""
    summary = summarise(state)
    titles = {p.id: p.title for p in principles}
    template = _environment().get_template("page.html.j2")
    return template.render(
        css=Markup(resources.files("egg.reports").joinpath("page.css").read_text(encoding="utf-8")),
        version=egg.__version__,
        state=state,
        summary=summary,
        task=state.started.task,
        lede=_lede(summary),
        tiles=_tiles(summary),
        ladder=_ladder(summary),
        attempts_chart=charts.attempts_chart(summary),
        steps=[_step(summary, at, titles) for at in range(len(summary.steps))],
        off_path=_off_path(summary),
        stages=STAGES,
        before=_before(summary),
        after=_after(summary),
        code=codeview.coloured_lines(summary.winner.candidate.source) if summary.winner else [],
        diff=_diff(summary),
        checks=_checks(summary.evaluation.trials if summary.evaluation else ()),
        worst_share=_worst_share(summary),
        titles=titles,
        title=title_of,
        verdict_words=_VERDICT_WORDS,
        command=_command(state),
        rests_on=foundation_rows(found) if (found := foundation(summary)) else [],
        path_note=PATH_NOTE,
    )


@dataclass(frozen=True)
class Tile:
    """One figure below the headline."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class LadderRow:
    """One bar of the ladder: a baseline, the winner or the floor."""

    name: str
    time: str
    speedup: str
    note: str
    bar: Markup | None
    kind: str


@dataclass(frozen=True)
class StepView:
    """One accepted move as it is drawn."""

    step: Step
    reasons: tuple[str, ...]
    bar: Markup | None
    predicted: str
    measured: str


@dataclass(frozen=True)
class CheckRow:
    """One output leaf of one trial."""

    trial: Trial
    leaf: LeafCheck
    rms_bar: Markup
    max_bar: Markup


def _environment() -> Environment:
    env = Environment(
        loader=PackageLoader("egg.reports", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "count": figures.count,
        "ms": figures.ms,
        "ratio": figures.ratio,
        "interval": figures.interval,
        "speedup": _speedup,
        "seconds": figures.seconds,
        "sentence": figures.sentence,
        "per_cent": figures.per_cent,
    }
    env.filters.update(filters)
    return env


def _speedup(attempt: Attempt) -> str:
    return figures.interval(speedup_of(attempt.evaluation))


def _lede(summary: Summary) -> str:
    outcome = summary.state.outcome
    if outcome is None:
        return "The run has not ended. What follows is as far as it has come; nothing here is verified yet."
    return figures.sentence(outcome.summary)


def _tiles(summary: Summary) -> list[Tile]:
    best = summary.best_rung
    policy = summary.state.started.config.policy
    return [
        Tile(
            f"Over eager{summary.estimate_note}",
            figures.ratio(summary.over_eager and summary.over_eager.value),
            _range(summary.over_eager),
        ),
        Tile(
            f"Over {best.name}" if best else "Over the best baseline",
            figures.ratio(summary.over_best and summary.over_best.value),
            _range(summary.over_best) if summary.over_best else "no baseline measured",
        ),
        Tile("Time of a call", figures.ms(summary.candidate_ms), "median" + _workload_note(summary)),
        Tile("Roofline floor", figures.ms(summary.floor_ms), summary.floor_note or "not known"),
        Tile("Largest error", figures.per_cent(_worst_share(summary)), f"of the {policy} limit"),
        Tile("Attempts", str(len(summary.state.attempts)), f"in {figures.seconds(summary.state.spent_s)}"),
    ]


def _range(value: Interval | None) -> str:
    if value is None or value.low is None or value.high is None:
        return "no interval"
    return f"95 %: {value.low:.2f} to {value.high:.2f}"


def _workload_note(summary: Summary) -> str:
    count = len(summary.state.started.task.workloads)
    return "" if count == 1 else f", sum of {count} workloads"


def _ladder(summary: Summary) -> list[LadderRow]:
    times = [r.median_ms for r in summary.rungs if r.median_ms] + [summary.candidate_ms or 0.0, summary.floor_ms or 0.0]
    longest = max(times) or 1.0
    rows = [
        LadderRow(
            name=rung.name,
            time=figures.ms(rung.median_ms),
            speedup=figures.interval(rung.speedup),
            note=rung.reason,
            bar=charts.bar(rung.median_ms / longest, "rung") if rung.median_ms else None,
            kind="rung",
        )
        for rung in summary.rungs
    ]
    ours, name = summary.candidate_ms, "EGG" if not summary.winner_is_reference else "EGG (the reference itself)"
    rows.append(LadderRow(name + summary.estimate_note, figures.ms(ours), "", "", _ours_bar(summary, longest), "ours"))
    floor = charts.bar(summary.floor_ms / longest, "floor") if summary.floor_ms else None
    rows.append(LadderRow("roofline floor", figures.ms(summary.floor_ms), "", "", floor, "floor"))
    return rows


def _ours_bar(summary: Summary, longest: float) -> Markup | None:
    if summary.evaluation is None or not summary.candidate_ms:
        return None
    timings = summary.evaluation.timings
    low, high = sum(t.candidate_p10_ms for t in timings), sum(t.candidate_p90_ms for t in timings)
    return charts.bar(summary.candidate_ms / longest, "ours", low / longest, min(high / longest, 1.0))


def _step(summary: Summary, at: int, titles: dict[str, str]) -> StepView:
    step = summary.steps[at]
    plan, effect = step.attempt.plan, step.attempt.effect
    before = summary.steps[at - 1].attempt.effect if at else None
    bar = None
    if before and effect:
        bar = charts.saving(1 / before, 1 / effect, 1 / (before * plan.predicted_effect), plan.stage)
    elif effect and not at:
        bar = charts.saving(1.0, 1.0, None, plan.stage)
    return StepView(
        step=step,
        reasons=tuple(titles.get(name, name) for name in plan.principle_ids),
        bar=bar,
        predicted=figures.ratio(plan.predicted_effect if at else None),
        measured=figures.ratio(step.measured_effect),
    )


def _off_path(summary: Summary) -> list[Attempt]:
    """Returns the attempts that started from a candidate which the winner does not descend from."""
    shown = {step.attempt.plan.index for step in summary.steps}
    shown |= {other.plan.index for step in summary.steps for other in step.others}
    return [a for a in summary.state.attempts if a.plan.index not in shown]


def _before(summary: Summary) -> list[tuple[str, Markup]]:
    return [
        (a.workload, graphview.column(graphview.operator_boxes(a), f"operators of {a.workload}"))
        for a in summary.state.analyses[:1]
    ]


def _after(summary: Summary) -> Markup | None:
    if summary.winner is None or summary.winner_is_reference:
        return None
    boxes = graphview.candidate_boxes(summary.winner.candidate)
    return graphview.column(boxes, "kernels and library calls of the winner") if boxes else None


def _diff(summary: Summary) -> Sequence[codeview.DiffLine]:
    if summary.winner is None or summary.winner_is_reference:
        return []
    return codeview.diff(summary.state.started.task.source, summary.winner.candidate.source)


def _checks(trials: Iterable[Trial]) -> list[CheckRow]:
    return [
        CheckRow(
            trial,
            leaf,
            charts.bar(min(_share(leaf.ratio_rms, leaf.limit_rms), 1.0), "error"),
            charts.bar(min(_share(leaf.ratio_max, leaf.limit_max), 1.0), "error"),
        )
        for trial in trials
        for leaf in trial.leaves
    ]


def _share(ratio: float, limit: float) -> float:
    return ratio / limit if limit else 0.0


def _worst_share(summary: Summary) -> float | None:
    """Returns the largest error over its limit among all leaves, in per cent."""
    leaves = [leaf for trial in summary.evaluation.trials for leaf in trial.leaves] if summary.evaluation else []
    shares = [max(_share(c.ratio_rms, c.limit_rms), _share(c.ratio_max, c.limit_max)) for c in leaves]
    return 100.0 * max(shares) if shares else None


def _command(state: RunState) -> str:
    config, task = state.started.config, state.started.task
    parts = ["egg optimize", _quoted(task.entry) if task.kind != "live" else "TASK"]
    if config.budget_s is not None:
        parts.append(f"--budget {config.budget_s:g}s")
    elif config.budget_attempts is not None:
        parts.append(f"--budget {config.budget_attempts}")
    parts += [f"--policy {config.policy}", f"--seed {config.seed}"]
    return " ".join(parts)


def _quoted(text: str) -> str:
    return f"'{text}'" if " " in text else text
