"""The folder of a run: started, gone on with, read and shown again, and the files in it.

Every import of a room that needs torch is inside the function that uses it.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from egg import compose
from egg.errors import UsageError

if TYPE_CHECKING:
    from egg.archive import RunFolder
    from egg.protocols import Listener
    from egg.request import Request
    from egg.schema.device import Device
    from egg.schema.principle import Principle
    from egg.schema.run import RunStarted, RunState
    from egg.schema.task import Task

PRINCIPLES = "principles"
"""Folder in a run that keeps the user's own principles, so that the run can go on and be shown without the original."""
RESULT, KERNEL, REPORT, LOG = "result.json", "kernel.py", "report.html", "events.jsonl"


def check_free(folder: Path) -> None:
    """Raises UsageError where a run can't be written to `folder` without losing another."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out {folder}: it is a file; name a folder")
    if _holds_run(folder):
        raise UsageError(
            f"{folder} already holds a run: go on with it by `egg resume {folder}`, show it by `egg show {folder}`, "
            "or choose another folder with --out"
        )
    for name in (RESULT, KERNEL, REPORT, PRINCIPLES):
        if (folder / name).exists():
            raise UsageError(f"{folder} holds {name}, which would be overwritten: choose another folder with --out")


def start(task: Task, folder: Path, request: Request, listeners: Sequence[Listener] = ()) -> RunState:
    """Returns the finished state of a new run in `folder`, with its files written. Raises EggError."""
    from egg import engine
    from egg.archive import RunFolder
    from egg.schema.run import RunState

    check_free(folder)
    principles = compose.load_principles(request.principles)
    started = run_started(task, compose.measured_device(), request)
    with RunFolder.create(folder) as archive:
        _keep_principles(request.principles, folder)
        with compose.machine(RunState(started=started), archive, principles, listeners) as parts:
            state = engine.run(parts, started)
        write_files(state, folder, principles)
    return state


def resume(folder: Path, listeners: Sequence[Listener] = ()) -> RunState:
    """Returns the finished state of the run in `folder`, going on from where it stopped. Raises EggError."""
    from egg import engine
    from egg.archive import RunFolder

    _require_run(folder)
    principles = compose.load_principles(_kept_principles(folder))
    with RunFolder.open(folder) as archive:
        _warn_of(archive)
        so_far = read(folder)
        if so_far.outcome is None:
            with compose.machine(so_far, archive, principles, listeners) as parts:
                so_far = engine.resume(parts)
        write_files(so_far, folder, principles)
    return so_far


def replay(folder: Path) -> RunState:
    """Returns the state of the run in `folder`, with its files written again; nothing is executed."""
    state = read(folder)
    write_files(state, folder, compose.load_principles(_kept_principles(folder)))
    return state


def read(folder: Path) -> RunState:
    """Returns the state of the run in `folder` as it was recorded. Raises UsageError, ArchiveError."""
    from egg.archive import RunFolder
    from egg.schema.run import fold

    _require_run(folder)
    archive = RunFolder.read(folder)
    _warn_of(archive)
    state: RunState | None = None
    for event in archive.events():
        state = fold(state, event)
    if state is None:
        raise UsageError(f"{folder} holds an empty run: it ended before its first event; start it again")
    return state


def run_started(task: Task, device: Device, request: Request) -> RunStarted:
    """Returns the first event of a new run."""
    from egg.schema.run import Config, RunStarted

    now = datetime.now(UTC)
    config = Config(
        policy=request.policy,
        budget_s=request.budget_s,
        budget_attempts=request.budget_attempts,
        seed=request.seed,
        threads=device.cores,
        ladder=request.ladder,
    )
    return RunStarted(
        run_id=f"{task.content_hash}-{now:%Y%m%dT%H%M%SZ}",
        started=now.isoformat(timespec="seconds"),
        task=task,
        device=device,
        config=config,
        versions=compose.versions(),
    )


def write_files(state: RunState, folder: Path, principles: Sequence[Principle] = ()) -> None:
    """Writes result.json, report.html and, where a winner was attested, kernel.py. Each file is whole or not there."""
    from egg.export.standalone import standalone
    from egg.reports.page import page
    from egg.reports.result import result
    from egg.reports.summary import summarise

    summary = summarise(state)
    if summary.winner is not None and summary.attested:
        _write(folder / KERNEL, standalone(summary.winner.candidate))
    _write(folder / REPORT, page(state, principles))
    _write(folder / RESULT, compose.as_json(result(state)))


def _holds_run(folder: Path) -> bool:
    """Returns True where the log has a first event; a run that was killed before it holds nothing to lose."""
    from egg.archive import RunFolder

    return (folder / LOG).is_file() and any(True for _ in RunFolder.read(folder).events())


def _require_run(folder: Path) -> None:
    if not (folder / LOG).is_file():
        raise UsageError(f"{folder} holds no run: it has no {LOG}; name the folder that `egg optimize` wrote")


def _warn_of(archive: RunFolder) -> None:
    for text in archive.warnings:
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _keep_principles(source: Path | None, folder: Path) -> None:
    if source is not None:
        shutil.copytree(source, folder / PRINCIPLES, dirs_exist_ok=True)


def _kept_principles(folder: Path) -> Path | None:
    kept = folder / PRINCIPLES
    return kept if kept.is_dir() else None
