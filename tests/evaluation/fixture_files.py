"""Reads the candidate files of `cheats/` and `honest/`: what each is, and what has to become of it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from egg.schema.evaluation import Tier

_OPENS, _CLOSES = "# /// fixture", "# ///"


@dataclass(frozen=True)
class FixtureFile:
    """One candidate file with the table that it carries in its head."""

    path: Path
    variant: str
    source: str
    """The text of the file, with the variant put in."""
    task: str
    expect: tuple[str, ...]
    """The statuses that may come out."""
    says: str
    """What the failure or a finding has to say; empty for anything."""
    tier: Tier
    least_ms: float
    """What a call takes in truth: a result that passes may not claim less."""
    most_speedup: float
    """What a result that passes may claim at most."""
    least_calls: int
    """How many timed calls a result that passes rests on at least."""
    allowance_s: float
    """Seconds that the evaluation may take."""
    runs: int
    """How many times in a row it is evaluated."""
    chances: int
    """Evaluations of which one has to end as expected: a cheat in one call of twenty gets away once in 700 times, and
    one that takes processor time does where a busy machine leaves it none."""
    leaves_no: str
    """Name of a file that may not be there afterwards; empty for none."""
    label: str
    """Who owns the work, where the result passes: `own`, `library` or `mixed`; empty for any."""
    bypass: str
    """Which known bypass of KernelBench's own checker this is; empty for none."""
    guarantee: str
    """Which guarantee of isolation keeps it out; empty where it takes none."""
    waits_for: str
    """What the house still lacks to catch it; empty where it is caught."""

    @property
    def item(self) -> int:
        """Number in the list of cheats; 0 for an honest file."""
        number = self.path.name.partition("_")[0]
        return int(number) if number.isdigit() else 0

    @property
    def name(self) -> str:
        """How a test names it."""
        return f"{self.path.stem}[{self.variant}]" if self.variant else self.path.stem


def read_fixtures(folder: Path) -> list[FixtureFile]:
    """Returns all files of a folder, one entry a variant, those of one task side by side."""
    found = [f for path in sorted(folder.glob("*.py")) if not path.name.startswith("__") for f in _variants(path)]
    return sorted(found, key=lambda f: (f.task, f.path.name))


def _variants(path: Path) -> list[FixtureFile]:
    text = path.read_text()
    table = _table(path, text)
    made: list[FixtureFile] = []
    for variant in table.pop("variants", [""]):
        own = {**table, **table.get("only", {}).get(variant, {})}
        source = text.replace('VARIANT = ""', f"VARIANT = {variant!r}")
        if variant and source == text:
            raise ValueError(f'{path}: a file with variants holds the line VARIANT = ""')
        made.append(
            FixtureFile(
                path=path,
                variant=variant,
                source=source,
                task=own["task"],
                expect=tuple(own.get("expect", ["PASSED"])),
                says=own.get("says", ""),
                tier=own.get("tier", "search"),
                least_ms=own.get("least_ms", 0.0),
                most_speedup=own.get("most_speedup", 1e9),
                least_calls=own.get("least_calls", 0),
                allowance_s=own.get("allowance_s", 60.0),
                runs=own.get("runs", 1),
                chances=own.get("chances", 1),
                leaves_no=own.get("leaves_no", ""),
                label=own.get("label", ""),
                bypass=own.get("bypass", ""),
                guarantee=own.get("guarantee", ""),
                waits_for=own.get("waits_for", ""),
            )
        )
    return made


def _table(path: Path, text: str) -> dict[str, Any]:
    lines = text.splitlines()
    if _OPENS not in lines:
        raise ValueError(f"{path}: no block {_OPENS!r}")
    rest = lines[lines.index(_OPENS) + 1 :]
    return tomllib.loads("\n".join(line.removeprefix("# ") for line in rest[: rest.index(_CLOSES)]))
