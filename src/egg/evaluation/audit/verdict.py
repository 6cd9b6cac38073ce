"""What the probes amount to: scorable, scorable after a redraw, or barred, and why. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from egg.schema.audit import Probe, Scorability

OWN = "own"


@dataclass(frozen=True)
class Decision:
    """The verdict with its reason, and the probes as they were weighed."""

    verdict: Scorability
    reason: str
    counting: tuple[str, ...]
    probes: tuple[Probe, ...]


def passing(probes: Sequence[Probe]) -> dict[str, list[Probe]]:
    """Returns the answers that no draws catch every time, by workload and answer, each with its probes."""
    held: dict[tuple[str, str], list[Probe]] = {}
    for probe in probes:
        held.setdefault((probe.workload, probe.answer), []).append(probe)
    return {
        f"{workload}: {answer}": found
        for (workload, answer), found in held.items()
        if not any(_catches(name, found) for name in {p.draws for p in found}) and all(p.counts for p in found)
    }


def _catches(draws: str, probes: Sequence[Probe]) -> bool:
    """Returns whether each of these probes under `draws` was caught, of at least one."""
    caught = [p.caught for p in probes if p.draws == draws]
    return bool(caught) and all(caught)


def decide(probes: Sequence[Probe], draws: Sequence[str]) -> Decision:
    """Returns the verdict; `draws` are those that were tried, the task's own first."""
    weighed = tuple(_weigh(probes))
    if not weighed:
        return Decision("barred", "nothing is compared: no output has an element", (), ())
    if left := passing(weighed):
        return Decision("barred", _barred(left), (), weighed)
    first_passes = [p for p in weighed if p.draws == OWN and not p.caught and p.counts]
    if not first_passes:
        return Decision("scorable", "every trivial answer fails under the task's own draws", (OWN,), weighed)
    catching = _catching(weighed, first_passes, draws)
    names = sorted({p.answer for p in first_passes})
    reason = f"with its own draws {_listed(names)} {_pass(names)}; draws that catch {_it(names)}: {', '.join(catching)}"
    return Decision("redrawn", reason, (OWN, *catching), weighed)


def _weigh(probes: Sequence[Probe]) -> list[Probe]:
    """Returns the probes; other weights do not count where not a single bit depends on them under any draw."""
    blind = {
        w
        for w in {p.workload for p in probes}
        if all(p.same for p in probes if p.name == "other weights" and p.workload == w)
    }
    return [
        p.updated(counts=False) if p.name == "other weights" and p.workload in blind and not p.caught else p
        for p in probes
    ]


def _catching(probes: Sequence[Probe], missed: Sequence[Probe], draws: Sequence[str]) -> tuple[str, ...]:
    """Returns the fewest draws, in order, that together catch every answer which the task's own draws miss."""
    left = {(p.workload, p.answer) for p in missed}
    needed: list[str] = []
    for name in draws:
        caught = {
            (workload, answer)
            for workload, answer in left
            if _catches(name, [p for p in probes if (p.workload, p.answer) == (workload, answer)])
        }
        if caught and name != OWN:
            needed.append(name)
            left -= caught
    return tuple(needed)


def _barred(left: dict[str, list[Probe]]) -> str:
    found = [probes[0] for probes in left.values()]
    names = sorted({p.answer for p in found})
    where = f"whatever is drawn, {_listed(names)} {_pass(names)}"
    workloads = {p.workload for p in found}
    if workloads != {"default"}:
        where += f" in workload {_listed(sorted(workloads))}"
    return f"{_cause(left)}: {where}"


def _cause(left: dict[str, list[Probe]]) -> str:
    by_name: dict[str, list[Probe]] = {}
    for probes in left.values():
        by_name.setdefault(probes[0].name, []).extend(probes)

    def exact(name: str) -> bool:
        return name in by_name and all(p.same for p in by_name[name])

    if exact("zeros"):
        return "the output is always 0, so it does not depend on the input"
    if exact("constant") or exact("stored output"):
        return "the output does not depend on the input"
    if exact("passthrough"):
        return "the output is an input as it is"
    if "zeros" in by_name:
        return "the output is too near to 0 for the check"
    if "constant" in by_name or "stored output" in by_name:
        return "the output hardly depends on the input"
    if "passthrough" in by_name:
        return "the output is nearly an input as it is"
    if "row mean" in by_name:
        return "the output hardly varies along an axis"
    return "the output hardly depends on the weights"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _pass(names: Sequence[str]) -> str:
    return "pass" if len(names) > 1 or names[0] in ("zeros", "other weights") else "passes"


def _it(names: Sequence[str]) -> str:
    return "them" if len(names) > 1 or names[0] in ("zeros", "other weights") else "it"
