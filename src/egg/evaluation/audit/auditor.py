"""Asks a reference worker to hold trivial answers against the check of its task, and says what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from egg.evaluation.audit.known import known_defect
from egg.evaluation.audit.verdict import OWN, decide, passing
from egg.protocols import Clock
from egg.schema.audit import Audit, Probe
from egg.schema.task import Task

SEEDS = 6
"""Fresh seeds that one request may use up."""


@dataclass(frozen=True)
class Draws:
    """How inputs and weights are drawn for one round of probes."""

    name: str
    kind: str
    """How the inputs are drawn, as `Reference.draw` knows it."""
    state: bool
    """True for other weights than those of the constructor."""


DRAWS = (
    Draws(OWN, "own", state=False),
    Draws("own, other weights", "own", state=True),
    Draws("signed", "signed", state=True),
    Draws("scaled", "scaled", state=True),
)
"""In the order in which they are tried, each as long as some trivial answer passes all before it."""
TWICE = 2
"""Rounds of draws that are not the task's own: only what catches an answer every time is relied on."""


Ask = Callable[..., Mapping[str, Any]]
"""Asks a reference worker that has loaded the task for one operation, by its name and fields."""


def audit(task: Task, policy: str, ask: Ask, entropy: Callable[[], int], clock: Clock) -> Audit:
    """Returns the verdict about a task. Raises TaskError where its reference fails or gives NaN."""
    started = clock()
    probes: list[Probe] = []
    tried: list[str] = []
    for workload in task.workloads:
        for name, found in _rounds(workload.name, ask, entropy):
            probes += found
            tried += [name] if name not in tried else []
    decision = decide(probes, tried)
    return Audit(
        task=task.name,
        suite=task.suite,
        content_hash=task.content_hash,
        policy=policy,
        verdict=decision.verdict,
        reason=decision.reason,
        counting=decision.counting,
        probes=decision.probes,
        known_defect=known_defect(task),
        wall_s=clock() - started,
    )


def _rounds(workload: str, ask: Ask, entropy: Callable[[], int]) -> list[tuple[str, list[Probe]]]:
    """Returns the probes of one workload by draws; a round holds only answers that pass all rounds before it."""
    found: list[tuple[str, list[Probe]]] = []
    only: list[str] | None = None
    for draws in DRAWS:
        held: list[Probe] = []
        for _ in range(1 if draws.name == OWN else TWICE):
            seeds = [entropy() for _ in range(SEEDS)]
            answer = ask("audit", workload=workload, kind=draws.kind, state=draws.state, seeds=seeds, only=only)
            held += [_probe(workload, draws.name, probe) for probe in answer.get("probes", [])]
        if not held:
            continue
        found.append((draws.name, held))
        left = passing([p for _, probes in found for p in probes])
        only = sorted({_key(p) for probes in left.values() for p in probes})
        if not only:
            break
    return found


def _probe(workload: str, draws: str, found: Mapping[str, Any]) -> Probe:
    fields = {k: v for k, v in found.items() if k != "key"}
    return Probe(workload=workload, draws=draws, **fields)


def _key(probe: Probe) -> str:
    return f"{probe.name}|{probe.variant}"
