"""The harness tried on itself: the same code against itself, and against a copy that does 3 % more work.

Both are real evaluations in the tier `attest`, with worker processes, trials and timing as for any candidate.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from egg.candidates.targets import Target
from egg.schema.candidate import Candidate
from egg.schema.checkup import Finding
from egg.schema.evaluation import Evaluation

PLANTED_PCT = 3.0
STEPS = 100
SIZES = {"cpu": (64, 256), "cuda": (2048, 2048)}
"""Of the inputs, by target: so large that the work, not the way to it, takes the time of a call."""
_HEAD = "import torch\nfrom torch import nn\n\n\n"
_FORWARD = """class {name}(nn.Module):
    def forward(self, x):
        y = x
        for _ in range({steps}):
            y = torch.sin(y) + x
"""
TASK = (
    _HEAD
    + _FORWARD.format(name="Model", steps=STEPS)
    + "        return y\n\n\ndef get_inputs():\n    return [torch.randn({rows}, {columns})]\n"
)
SAME = _HEAD + _FORWARD.format(name="ModelNew", steps=STEPS) + "        return y\n"
SLOWER = (
    _HEAD
    + _FORWARD.format(name="ModelNew", steps=STEPS)
    + f"        z = y\n        for _ in range({round(STEPS * PLANTED_PCT / 100)}):\n            z = torch.sin(z) + x\n"
    + "        return y\n"
)


class Judge(Protocol):
    """Evaluates candidates for the task in a file, on one target."""

    def __call__(self, task: Path, candidates: Sequence[Candidate], target: Target) -> list[Evaluation]:
        """Returns what was seen of each in the tier attest. Raises EggError where the house fails."""
        ...


@dataclass(frozen=True)
class Tried:
    """The two evaluations of a self-test."""

    same: Evaluation
    slower: Evaluation

    @property
    def noise_pct(self) -> float:
        """Half the width of the interval of the same code against itself."""
        return _half_width_pct(self.same)

    @property
    def is_noisy(self) -> bool:
        """True where the planted slowdown can't be expected to show."""
        return max(self.noise_pct, _half_width_pct(self.slower)) > PLANTED_PCT / 2


def try_harness(judge: Judge, target: Target = "cpu") -> Tried:
    """Returns what the harness says about the same code, and about code with a planted slowdown, run on a target."""
    rows, columns = SIZES[target]
    with tempfile.TemporaryDirectory(prefix="egg-doctor-") as folder:
        path = Path(folder) / "self_test.py"
        path.write_text(TASK.format(rows=rows, columns=columns))
        return Tried(*judge(path, [_candidate(source) for source in (SAME, SLOWER)], target))


def self_test(tried: Tried, target: Target = "cpu") -> Iterator[Finding]:
    """Yields the noise floor, and whether nothing is claimed of the same code and the slowdown is found."""
    for finding in _found(tried):
        yield finding if target == "cpu" else finding.updated(name=f"{finding.name}, GPU")


def _found(tried: Tried) -> Iterator[Finding]:
    for name, seen in (("same code against itself", tried.same), ("planted slowdown", tried.slower)):
        if seen.failure is not None:
            said = f"{seen.status} in {seen.failure.phase}: {seen.failure.message}"
            yield Finding(
                group="self-test", name=name, state="missing", said=said, costs="no verdict here can be trusted",
                fix="report it with the output of `egg doctor --json`", needed=True,
            )  # fmt: skip
            return
    yield _noise(tried)
    yield _same(tried)
    yield _slower(tried)


def _noise(tried: Tried) -> Finding:
    said = f"{tried.noise_pct:.2g} % (half the 95 % interval of the same code against itself)"
    if tried.noise_pct <= PLANTED_PCT / 2:
        return Finding(group="self-test", name="noise floor", state="ok", said=said)
    return Finding(
        group="self-test", name="noise floor", state="missing", said=said,
        costs=f"gains below about {tried.noise_pct:.2g} % can't be told from noise now", fix=_QUIET,
    )  # fmt: skip


def _same(tried: Tried) -> Finding:
    name = "same code against itself"
    if tried.is_noisy:
        return _lost(name, tried.same)
    if not _beyond(tried.same):
        return Finding(group="self-test", name=name, state="ok", said=f"{_shown(tried.same)}, nothing claimed")
    return Finding(
        group="self-test", name=name, state="missing", said=f"{_shown(tried.same)}: a difference where there is none",
        costs="small gains that are measured now may not be real", fix=_QUIET,
    )  # fmt: skip


def _slower(tried: Tried) -> Finding:
    name = f"planted slowdown of {PLANTED_PCT:g} %"
    if tried.is_noisy:
        return _lost(name, tried.slower)
    if (tried.slower.speedup_high or 0.0) < 1.0:
        return Finding(group="self-test", name=name, state="ok", said=f"{_shown(tried.slower)}, found")
    return Finding(
        group="self-test", name=name, state="missing", said=f"{_shown(tried.slower)}, not found",
        costs=f"differences of {PLANTED_PCT:g} % are not found now", fix=_QUIET,
    )  # fmt: skip


def _lost(name: str, seen: Evaluation) -> Finding:
    """Returns the line for what this machine is too noisy to tell."""
    return Finding(
        group="self-test", name=name, state="unknown", said=f"{_shown(seen)}, lost in the noise of this machine",
        costs=f"differences of {PLANTED_PCT:g} % can't be told now", fix=_QUIET,
    )  # fmt: skip


_QUIET = "end other work, fix the clock frequency, then try again"


def _beyond(seen: Evaluation) -> bool:
    """Returns whether the interval lies beyond half the planted slowdown on either side."""
    low, high = seen.speedup_low or 0.0, seen.speedup_high or 0.0
    return low > 1 + PLANTED_PCT / 200 or high < 1 - PLANTED_PCT / 200


def _half_width_pct(seen: Evaluation) -> float:
    return 50 * ((seen.speedup_high or 0.0) - (seen.speedup_low or 0.0))


def _shown(seen: Evaluation) -> str:
    return f"{seen.speedup:.3f}× [{seen.speedup_low:.3f}, {seen.speedup_high:.3f}]"


def _candidate(source: str) -> Candidate:
    return Candidate(language="torch", source=source, author="egg doctor", rationale="self-test")
