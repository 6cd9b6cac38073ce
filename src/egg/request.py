"""What a caller may ask of a run, checked before any other work starts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from egg.errors import UsageError

if TYPE_CHECKING:
    from egg.schema.task import Policy

AUTHORS = ("expert",)
POLICIES = ("strict", "tf32", "half", "kernelbench")
"""Those that the evaluator can judge by."""


@dataclass(frozen=True)
class Request:
    """What the caller asks of a run, checked."""

    policy: Policy = "strict"
    budget_s: float | None = 60.0
    budget_attempts: int | None = None
    seed: int = 0
    principles: Path | None = None
    """Folder with principles of the user's own."""
    ladder: tuple[str, ...] = field(default=("eager", "torch.compile"))


def check_author(name: str) -> None:
    """Raises UsageError for an author that does not exist."""
    if name not in AUTHORS:
        raise UsageError(
            f"--model {name!r}: no such author; there is {', '.join(AUTHORS)}, which needs no key or network"
        )


def check_author_target(author: str, target: str) -> None:
    """Raises UsageError where an author can't write for a target, and for a target that does not exist."""
    if target not in ("auto", "cpu", "cuda"):
        raise UsageError(f"--target {target!r}: choose auto or cpu")
    if target == "cuda":
        raise UsageError(
            f"--target cuda: the author {author} writes kernels for the CPU only; leave --target away, or verify "
            "a GPU kernel of your own with `egg verify --target cuda`"
        )


def check_policy(name: str) -> None:
    """Raises UsageError for a policy that nothing is judged by."""
    if name not in POLICIES:
        raise UsageError(f"--policy {name!r}: choose one of {', '.join(POLICIES)}")


def parse_budget(text: str | float) -> tuple[float | None, int | None]:
    """Returns (seconds, attempts), one of them None: `60s`, `2m`, `1.5h` or a number of attempts. Raises UsageError."""
    match = re.fullmatch(r"(?P<number>\d+(\.\d+)?)(?P<unit>ms|s|m|h|min)?", str(text).strip())
    fix = "write seconds (60s), minutes (2m), hours (1h) or a whole number of attempts (20)"
    if match is None:
        raise UsageError(f"--budget {str(text)!r}: {fix}")
    number, unit = float(match["number"]), match["unit"]
    if number == 0:
        raise UsageError(f"--budget {str(text)!r}: nothing can be done in no time; {fix}")
    if unit is None:
        if not number.is_integer():
            raise UsageError(f"--budget {str(text)!r}: attempts are whole numbers; {fix}")
        return None, int(number)
    return number * {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600}[unit], None


def default_folder(task_name: str) -> Path:
    """Returns where a run of the task goes unless the caller says otherwise."""
    return Path("egg-out") / (re.sub(r"[^\w.-]+", "_", task_name).strip("._") or "task")
