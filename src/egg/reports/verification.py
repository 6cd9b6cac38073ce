"""A verification as rich renderables for the terminal, and as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

import egg
from egg.reports import figures
from egg.reports.basis import Foundation, foundation_data, foundation_table
from egg.reports.summary import EAGER, ITSELF, Interval, Rung, method_of, rungs_of, speedup_of
from egg.schema.evaluation import Evaluation, KernelShare, LeafCheck, Trial
from egg.schema.verification import Verification

VERIFICATION_SCHEMA_VERSION = 1
DEFINITION = "speedup = time of the baseline / time of the candidate; above 1 the candidate is faster"
OWNERS = ("candidate", "library", "aten", "unknown")
_OWNER_WORDS = {"candidate": "own kernels", "library": "vendor library", "aten": "PyTorch", "unknown": "unknown"}
_KERNELS_SHOWN = 6


def verification_table(found: Verification) -> RenderableType:
    """Returns verdict, trials, timing, authorship, findings and what all of it rests on."""
    style = "bold green" if found.attested else "bold" if found.passed else "bold red"
    headline, *words = found.explain().splitlines()
    parts: list[RenderableType] = [Text(headline, style), *(Text(line) for line in words)]
    if (failure := found.evaluation.failure) is not None and failure.detail:
        parts += [Text(""), Text(failure.detail.rstrip(), "dim")]
    if found.evaluation.trials:
        parts += [Text(""), trial_table(found.evaluation.trials)]
    if found.passed:
        parts += [Text(""), timing_table(found), Text(DEFINITION, "dim"), Text(""), authorship(found.evaluation)]
    findings = found.evaluation.findings
    parts += [Text(""), Text("findings: " + ("; ".join(findings) or "none"))]
    parts += [Text(f"note: {note}", "dim") for note in found.notes]
    parts += [Text(""), foundation_table(foundation_of(found))]
    return Group(*parts)


def trial_table(trials: Sequence[Trial]) -> Table:
    """Returns each trial with its worst output against the limits."""
    table = _table()
    several = len({t.workload for t in trials}) > 1
    if several:
        table.add_column("workload")
    table.add_column("trial")
    table.add_column("worst output")
    table.add_column("rms error / limit", justify="right", no_wrap=True)
    table.add_column("largest / limit", justify="right", no_wrap=True)
    table.add_column("")
    for trial in trials:
        leaf = worst_leaf(trial)
        row: list[str | Text] = [trial.workload] if several else []
        row += [Text(trial.kind)]
        if leaf is None:
            row += ["–", "–", "–"]
        else:
            row += [
                Text(leaf.leaf),
                f"{leaf.ratio_rms:.2g} / {leaf.limit_rms:g}",
                f"{leaf.ratio_max:.2g} / {leaf.limit_max:g}",
            ]
        table.add_row(*row, Text("ok", "green") if trial.passed else Text("FAILED", "bold red"))
    return table


def timing_table(found: Verification) -> Table:
    """Returns the candidate's own times, then each baseline with the candidate's speedup over it."""
    table = _table()
    table.add_column("", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("10th to 90th", justify="right", no_wrap=True)
    table.add_column("speedup [95 %]", justify="right")
    table.add_column("method", no_wrap=True)
    barred = " (barred)" if found.evaluation.barred else ""
    for timing in found.evaluation.timings:
        name = "candidate" if len(found.workloads) == 1 else f"candidate, {timing.workload}"
        spread = f"{figures.ms(timing.candidate_p10_ms)} to {figures.ms(timing.candidate_p90_ms)}"
        table.add_row(Text(name + barred, "bold"), figures.ms(timing.candidate_ms), spread, "", timing.method)
    for rung in ladder(found):
        if rung.reason:
            table.add_row(rung.name, "–", "", Text(f"not available: {rung.reason}"), "")
        else:
            spread = _eager_spread(found) if rung.name == EAGER else ""
            speedup = figures.interval(rung.speedup)
            speedup += unclaimed(found)
            table.add_row(rung.name, figures.ms(rung.median_ms), spread, speedup, rung.how)
    if found.floor_ms is not None:
        share = 100 * found.floor_ms / (found.evaluation.candidate_ms or found.floor_ms)
        reached = Text(f"{min(share, 100):.0f} % of it reached", "dim")
        table.add_row(Text("roofline floor", "dim"), figures.ms(found.floor_ms), "", reached, "")
    return table


def authorship(evaluation: Evaluation) -> RenderableType:
    """Returns whose kernels ran and what share of the time each had."""
    if not evaluation.kernels:
        share = evaluation.profile.get("library_share_pct")
        known = "" if share is None else f"; PyTorch's own operators took {share:.0f} % of a call"
        return Text(f"authorship: not measured{known}")
    shares = owner_shares(evaluation.kernels)
    said = ", ".join(f"{_OWNER_WORDS[o]} {shares[o]:.0f} %" for o in OWNERS if shares[o])
    table = _table()
    for name, right in (("kernel", False), ("whose", False), ("share", True), ("launches a call", True)):
        table.add_column(name, justify="right" if right else "left")
    for kernel in evaluation.kernels[:_KERNELS_SHOWN]:
        table.add_row(Text(kernel.name), _OWNER_WORDS[kernel.owner], f"{kernel.share_pct:.0f} %", f"{kernel.calls:g}")
    return Group(Text(f"authorship: {said}"), table)


def verification_data(found: Verification) -> dict[str, Any]:
    """Returns the verification as plain JSON values. What was not measured is None; times are in ms."""
    seen = found.evaluation
    return {
        "schema_version": VERIFICATION_SCHEMA_VERSION,
        "egg_version": egg.__version__,
        "verified": found.verified,
        "attested": found.attested,
        "barred": seen.barred or None,
        "headline": found.headline,
        "explanation": found.explain(),
        "task": {
            "name": found.task,
            "content_hash": found.task_hash,
            "workloads": list(found.workloads),
            "training": found.training,
        },
        "candidate": {"name": found.candidate, "entry": found.entry, "id": seen.candidate_id},
        "status": str(seen.status),
        "failure": seen.failure.model_dump(mode="json") if seen.failure else None,
        "trials": [_trial(t) for t in seen.trials],
        "definition": DEFINITION,
        "claim": found.claim,
        "not_claimed": seen.not_claimed or None,
        "speedup": _interval(speedup_of(seen)),
        "candidate_ms": seen.candidate_ms,
        "timings": [t.model_dump(mode="json") for t in seen.timings],
        "baselines": {rung.name: _rung(rung) for rung in ladder(found)},
        "floor_ms": found.floor_ms,
        "authorship": _authorship(seen),
        "findings": list(seen.findings),
        "notes": list(found.notes),
        "rests_on": foundation_data(foundation_of(found)),
        "seconds": seen.wall_s,
    }


def foundation_of(found: Verification) -> Foundation:
    """Returns what a verification rests on."""
    hashes = {"candidate": found.evaluation.candidate_id, "task": found.task_hash}
    return Foundation(found.evaluation, found.device, found.versions, hashes)


def ladder(found: Verification) -> tuple[Rung, ...]:
    """Returns the baselines with the candidate's speedup over each; eager is there whenever anything was timed."""
    ours = speedup_of(found.evaluation)
    rungs = rungs_of(found.baselines, found.evaluation, ours)
    if ours is None or any(rung.name == EAGER for rung in rungs):
        return rungs
    reference_ms = sum(t.reference_ms for t in found.evaluation.timings)
    return (Rung(EAGER, reference_ms, "", ITSELF, ours, method_of(found.evaluation)), *rungs)


def unclaimed(found: Verification) -> str:
    """Returns what to write beside a speedup from which nothing may be claimed; empty where something may."""
    if found.evaluation.barred:
        return " (barred)"
    return " (not claimed)" if found.attested and found.evaluation.not_claimed else ""


def owner_shares(kernels: Sequence[KernelShare]) -> dict[str, float]:
    """Returns the share of the time by owner, in per cent."""
    return {owner: sum(k.share_pct for k in kernels if k.owner == owner) for owner in OWNERS}


def worst_leaf(trial: Trial) -> LeafCheck | None:
    """Returns the output that came nearest to its limits, or went furthest beyond; None where none was measured."""
    return max(trial.leaves, key=_excess, default=None)


def _excess(leaf: LeafCheck) -> float:
    return max(leaf.ratio_rms / (leaf.limit_rms or 1.0), leaf.ratio_max / (leaf.limit_max or 1.0))


def _eager_spread(found: Verification) -> str:
    """Returns the percentiles of eager where there is one workload and they were kept."""
    first = found.evaluation.timings[0]
    if len(found.evaluation.timings) > 1 or first.reference_p10_ms is None:
        return ""
    return f"{figures.ms(first.reference_p10_ms)} to {figures.ms(first.reference_p90_ms)}"


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "workload": trial.workload,
        "kind": trial.kind,
        "seed": trial.seed,
        "passed": trial.passed,
        "message": trial.message,
        "outputs": [_leaf(leaf) for leaf in trial.leaves],
    }


def _leaf(leaf: LeafCheck) -> dict[str, Any]:
    """Returns one output of one trial. A ratio beyond all bounds is None, since JSON has no infinity."""
    content = leaf.model_dump(mode="json")
    for name in ("ratio_rms", "ratio_max"):
        if not isfinite(getattr(leaf, name)):
            content[name] = None
    return content


def _interval(value: Interval | None) -> dict[str, float | None] | None:
    return None if value is None else {"value": value.value, "low": value.low, "high": value.high}


def _rung(rung: Rung) -> dict[str, Any]:
    return {
        "median_ms": rung.median_ms,
        "available": not rung.reason,
        "reason": rung.reason or None,
        "method": None if rung.reason else rung.method,
        "speedup_over_it": _interval(rung.speedup),
    }


def _authorship(evaluation: Evaluation) -> dict[str, Any] | None:
    if not evaluation.kernels:
        return None
    return {
        "share_pct": owner_shares(evaluation.kernels),
        "kernels": [k.model_dump(mode="json") for k in evaluation.kernels],
    }


def _table() -> Table:
    return Table(box=None, pad_edge=False, header_style="dim")
