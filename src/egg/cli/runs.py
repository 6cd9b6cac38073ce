"""The commands that make or read a run."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from egg import compose, request, runs
from egg.cli import faults
from egg.cli.progress import watching
from egg.reports.markdown import markdown as as_markdown
from egg.reports.result import result
from egg.reports.terminal import final_table
from egg.schema.run import RunState

if TYPE_CHECKING:
    from egg.schema.task import Policy


@dataclass(frozen=True)
class Asked:
    """The command line of `egg optimize`."""

    task: str
    out: Path | None
    inputs: str | None
    target: str
    model: str
    policy: Policy
    budget: str
    seed: int
    principles: Path | None
    as_json: bool


def optimize(asked: Asked) -> int:
    """Returns the exit status of a new run. What can be wrong is found before anything is written."""
    request.check_author(asked.model)
    request.check_author_target(asked.model, asked.target)
    request.check_policy(asked.policy)
    budget_s, attempts = request.parse_budget(asked.budget)
    compose.load_principles(asked.principles)
    if asked.out is not None:
        runs.check_free(asked.out)
    task = compose.find_task(asked.task, asked.inputs)
    folder = request.default_folder(task.name) if asked.out is None else asked.out
    runs.check_free(folder)
    wanted = request.Request(asked.policy, budget_s, attempts, asked.seed, asked.principles)
    with watching(Console(stderr=True), time.monotonic) as listener:
        state = runs.start(task, folder, wanted, [listener])
    return _shown(state, folder, asked.as_json)


def resume(folder: Path, as_json: bool) -> int:
    """Returns the exit status of a run that went on."""
    with watching(Console(stderr=True), time.monotonic) as listener:
        state = runs.resume(folder, [listener])
    return _shown(state, folder, as_json)


def replay(folder: Path, as_json: bool) -> int:
    """Returns the exit status of a run whose files were written again."""
    return _shown(runs.replay(folder), folder, as_json)


def show(folder: Path, as_json: bool) -> int:
    """Returns the exit status of a run that was printed again."""
    return _shown(runs.read(folder), folder, as_json)


def report(folder: Path, markdown: bool) -> int:
    """Returns the exit status of a run whose report was written again."""
    state = runs.replay(folder)
    if markdown:
        sys.stdout.write(as_markdown(state))
    else:
        sys.stdout.write(f"{folder / runs.REPORT}\n")
    return _status(state)


def _shown(state: RunState, folder: Path, as_json: bool) -> int:
    if as_json:
        sys.stdout.write(compose.as_json(result(state)))
        return _status(state)
    console = Console()
    console.print(final_table(state))
    console.print()
    for name in (runs.KERNEL, runs.REPORT, runs.RESULT):
        if (folder / name).exists():
            console.print(f"{folder / name}", markup=False, highlight=False, soft_wrap=True)
    return _status(state)


def _status(state: RunState) -> int:
    """Returns 0 for a verified result, 1 for anything less."""
    done = state.outcome is not None and state.outcome.verified and state.outcome.stopped_by != "interrupted"
    return 0 if done else faults.NO_RESULT
