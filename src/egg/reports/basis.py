"""What the figures of an evaluation rest on, in words and as data. What is not known reads `unknown`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from egg.reports.summary import Summary
from egg.schema.evaluation import BUSY_PCT, UNKNOWN, Basis, Evaluation

_SEEDS_SHOWN = 8
_TIERS = {
    "attest": "attest (fresh processes, the full trial plan; such figures are published)",
    "search": "search (warm processes, a short trial plan; its figures are estimates)",
}


@dataclass(frozen=True)
class Foundation:
    """All that a verdict and its figures rest on."""

    evaluation: Evaluation
    device: str
    versions: Mapping[str, str]
    hashes: Mapping[str, str]
    """By what they identify: `candidate`, `task`, `harness`."""

    @property
    def basis(self) -> Basis | None:
        """What the evaluator recorded; None in older records."""
        return self.evaluation.basis

    @property
    def policy(self) -> str:
        """The precision policy."""
        return self.basis.policy if self.basis else self.evaluation.environment.get("policy", UNKNOWN)

    @property
    def timing_methods(self) -> tuple[str, ...]:
        """The clocks that the figures come from; none where nothing was timed."""
        return tuple(dict.fromkeys(t.method for t in self.evaluation.timings))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Those of the trials, in order."""
        return tuple(t.seed for t in self.evaluation.trials)

    @property
    def threads(self) -> str:
        """Threads that both sides may use."""
        return self.evaluation.environment.get("threads", UNKNOWN)

    @property
    def all_versions(self) -> dict[str, str]:
        """Those of this process, with what the workers report of theirs."""
        seen = self.evaluation.environment
        return {**self.versions, **{k: seen[k] for k in ("python", "torch") if k in seen}}

    @property
    def all_hashes(self) -> dict[str, str]:
        """Each hash by what it identifies, `unknown` where it was not recorded."""
        recorded = self.basis.hashes if self.basis else {}
        return {"candidate": UNKNOWN, "task": UNKNOWN, "harness": UNKNOWN} | dict(self.hashes) | recorded


def foundation(summary: Summary) -> Foundation | None:
    """Returns what the figures of a run rest on; None where nothing was measured."""
    if summary.evaluation is None:
        return None
    started = summary.state.started
    hashes = {"candidate": summary.evaluation.candidate_id, "task": started.task.content_hash}
    return Foundation(summary.evaluation, started.device.name, started.versions, hashes)


def foundation_table(found: Foundation) -> Table:
    """Returns the block `rests on` for the terminal."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("rests on", no_wrap=True)
    table.add_column("", overflow="fold")
    for name, words in foundation_rows(found):
        table.add_row(Text(name, "dim"), Text(words))
    return table


def foundation_rows(found: Foundation) -> list[tuple[str, str]]:
    """Returns what it rests on as (name, words), for a table."""
    environment = found.evaluation.environment
    barred = f"; barred, so nothing is published: {found.evaluation.barred}" if found.evaluation.barred else ""
    return [
        ("tier", f"{_TIERS[found.evaluation.tier]}{barred}"),
        ("policy", found.policy),
        ("mode", environment.get("mode", UNKNOWN)),
        ("timing", _timing(found)),
        ("noise floor", _noise(found.basis)),
        ("isolation", _layers(found.basis.isolation if found.basis else ())),
        ("not isolated", _missing(found.basis)),
        ("workers", environment.get("start_method", UNKNOWN)),
        ("seeds", _seeds(found.seeds)),
        ("hashes", ", ".join(f"{name} {value}" for name, value in found.all_hashes.items())),
        ("device", f"{found.device}, {found.threads} threads"),
        ("versions", ", ".join(f"{name} {value}" for name, value in found.all_versions.items()) or UNKNOWN),
    ]


def foundation_data(found: Foundation) -> dict[str, Any]:
    """Returns what it rests on as plain JSON values. What is not known is None, or the word `unknown` for a text."""
    basis = found.basis
    return {
        "tier": found.evaluation.tier,
        "barred": found.evaluation.barred or None,
        "policy": found.policy,
        "mode": found.evaluation.environment.get("mode", UNKNOWN),
        "timing_methods": list(found.timing_methods),
        "noise_floor_pct": basis.noise_floor_pct if basis else None,
        "isolation": list(basis.isolation) if basis and basis.isolation else None,
        "missing_isolation": list(basis.missing_isolation)
        if basis and (basis.isolation or basis.missing_isolation)
        else None,
        "seeds": list(found.seeds),
        "hashes": found.all_hashes,
        "device": found.device,
        "threads": found.threads,
        "versions": found.all_versions,
        "environment": dict(found.evaluation.environment),
    }


def _timing(found: Foundation) -> str:
    if not found.timing_methods:
        return "nothing was timed"
    timings = found.evaluation.timings
    calls, blocks = sum(t.calls for t in timings), sum(t.blocks for t in timings)
    said = f"{' and '.join(found.timing_methods)} clock, {calls} calls in {blocks} pairs of interleaved blocks"
    for number, words in (
        (sum(t.discarded for t in timings), "pairs discarded"),
        (sum(t.checked_calls for t in timings), "timed calls checked"),
    ):
        said += f", {number} {words}" if number else ""
    others_pct = max((t.others_pct for t in timings if t.others_pct is not None), default=0.0)
    if others_pct > BUSY_PCT:
        said += f"; others took {others_pct:.0f} % of the machine's processors meanwhile"
    return said


def _noise(basis: Basis | None) -> str:
    if basis is None or basis.noise_floor_pct is None:
        return "not measured"
    return f"{basis.noise_floor_pct:.2g} %"


def _layers(names: Sequence[str]) -> str:
    return ", ".join(names) or UNKNOWN


def _missing(basis: Basis | None) -> str:
    if basis is None or not (basis.isolation or basis.missing_isolation):
        return UNKNOWN
    return "; ".join(basis.missing_isolation) or "nothing is missing"


def _seeds(seeds: Sequence[int]) -> str:
    if not seeds:
        return "no inputs were drawn"
    shown = ", ".join(map(str, seeds[:_SEEDS_SHOWN]))
    return f"{shown}, and {len(seeds) - _SEEDS_SHOWN} more in the JSON" if len(seeds) > _SEEDS_SHOWN else shown
