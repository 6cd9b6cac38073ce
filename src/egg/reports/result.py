"""The content of `result.json`."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import egg
from egg.reports.basis import foundation, foundation_data
from egg.reports.summary import ESTIMATE, Interval, Rung, Step, Summary, summarise, title_of
from egg.schema.run import RunState
from egg.schema.task import Task

RESULT_SCHEMA_VERSION = 1


def result(state: RunState) -> dict[str, Any]:
    """Returns the result of a run as plain JSON values. What was not measured is None; times are medians in ms."""
    summary = summarise(state)
    started, outcome = state.started, state.outcome
    return {
        "schema_version": RESULT_SCHEMA_VERSION,
        "egg_version": egg.__version__,
        "run_id": started.run_id,
        "started": started.started,
        "task": _task(started.task),
        "device": started.device.model_dump(mode="json"),
        "policy": started.config.policy,
        "seed": started.config.seed,
        "threads": started.config.threads,
        "verified": outcome is not None and outcome.verified,
        "faster": outcome is not None and outcome.faster,
        "summary": summary.headline,
        "reason": outcome.summary if outcome else None,
        "stopped_by": outcome.stopped_by if outcome else None,
        "figures": _figures(summary),
        "candidate_ms": summary.candidate_ms,
        "baselines": {rung.name: _baseline(rung) for rung in summary.rungs},
        "speedup": _speedups(summary),
        "workloads": _workloads(summary),
        "floor_ms": summary.floor_ms,
        "winner": summary.winner.candidate.id if summary.winner else None,
        "winner_is_reference": summary.winner_is_reference,
        "path": [_step(step) for step in summary.steps],
        "not_covered": list(summary.winner.candidate.not_covered) if summary.winner else [],
        "rests_on": foundation_data(found) if (found := foundation(summary)) else None,
        "environment": _environment(summary),
        "attempts": len(state.attempts),
        "verdicts": dict(Counter(a.verdict for a in state.attempts)),
        "seconds": state.spent_s,
    }


def _figures(summary: Summary) -> str | None:
    """Returns how the figures were reached: `attested`, or the word for an estimate; None where there are none."""
    if summary.evaluation is None or summary.evaluation.speedup is None:
        return None
    return "attested" if summary.attested else ESTIMATE


def _task(task: Task) -> dict[str, Any]:
    return {
        "name": task.name,
        "suite": task.suite,
        "kind": task.kind,
        "entry": task.entry,
        "class_name": task.class_name,
        "content_hash": task.content_hash,
        "file_hash": hashlib.sha256(task.source.encode()).hexdigest() if task.source else None,
        "workloads": [w.name for w in task.workloads],
        "training": task.training,
        "notes": list(task.notes),
    }


def _baseline(rung: Rung) -> dict[str, Any]:
    method = None if rung.reason else rung.method
    return {
        "median_ms": rung.median_ms,
        "available": rung.median_ms is not None,
        "reason": rung.reason or None,
        "method": method,
    }


def _speedups(summary: Summary) -> dict[str, Any]:
    best = summary.best_rung
    over_best = {"baseline": best.name, **(_interval(best.speedup) or {})} if best and best.speedup else None
    return {**{rung.name: _interval(rung.speedup) for rung in summary.rungs}, "over_best": over_best}


def _interval(value: Interval | None) -> dict[str, float | None] | None:
    return None if value is None else {"value": value.value, "low": value.low, "high": value.high}


def _workloads(summary: Summary) -> dict[str, Any]:
    if summary.evaluation is None:
        return {}
    return {
        t.workload: {
            "candidate_ms": t.candidate_ms,
            "reference_ms": t.reference_ms,
            "speedup": {"value": t.speedup, "low": t.speedup_low, "high": t.speedup_high},
            "setup_ms": t.setup_ms,
            "method": t.method,
        }
        for t in summary.evaluation.timings
    }


def _step(step: Step) -> dict[str, Any]:
    attempt = step.attempt
    return {
        "attempt": attempt.plan.index,
        "stage": attempt.plan.stage,
        "title": title_of(attempt),
        "principles": list(attempt.plan.principle_ids),
        "predicted_effect": attempt.plan.predicted_effect,
        "measured_effect": step.measured_effect,
        "measured_by": attempt.evaluation.tier,
        "candidate": attempt.candidate.id,
        "candidate_ms": attempt.evaluation.candidate_ms,
        "reason": attempt.reason,
    }


def _environment(summary: Summary) -> dict[str, str]:
    seen = summary.evaluation.environment if summary.evaluation else {}
    return {**summary.state.started.versions, **seen}
