"""The rooms put together into one run, for the command line and the Python API alike.

Every import of a room that needs torch is inside the function that uses it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import egg
from egg.errors import UsageError

if TYPE_CHECKING:
    from egg.archive import RunFolder
    from egg.candidates.targets import Target
    from egg.protocols import Analyst, Evaluator, Listener, Machine
    from egg.request import Request
    from egg.schema.analysis import Analysis
    from egg.schema.candidate import Candidate
    from egg.schema.device import Device
    from egg.schema.evaluation import Baseline, Evaluation, Tier
    from egg.schema.plan import StagePlan
    from egg.schema.principle import Principle
    from egg.schema.run import Event, RunStarted, RunState
    from egg.schema.task import Task

PRINCIPLES = "principles"
"""Folder in a run that keeps the user's own principles, so that the run can go on and be shown without the original."""
RESULT, KERNEL, REPORT, LOG = "result.json", "kernel.py", "report.html", "events.jsonl"


def cache_folder() -> Path:
    """Returns the folder for what is worth keeping between runs; `EGG_CACHE_DIR` overrides it."""
    if own := os.environ.get("EGG_CACHE_DIR"):
        return Path(own).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache").absolute() / "egg"


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


def _holds_run(folder: Path) -> bool:
    """Returns True where the log has a first event; a run that was killed before it holds nothing to lose."""
    from egg.archive import RunFolder

    return (folder / LOG).is_file() and any(True for _ in RunFolder.read(folder).events())


def load_principles(folder: Path | None) -> tuple[Principle, ...]:
    """Returns the built-in principles with those of `folder`. Raises UsageError."""
    from egg.knowledge import loader

    return loader.load_principles(*([folder] if folder is not None else []))


def measured_device(target: Target = "cpu") -> Device:
    """Returns this machine's CPU or first GPU with its limits, measured a few times and kept in the cache folder.

    Raises SandboxError for a GPU that can't be measured.
    """
    from egg.analysis.device import cached_device

    folder = cache_folder() / "devices"
    if target == "cpu":
        return cached_device(folder)
    from egg.analysis.gpu import cached_gpu
    from egg.candidates.targets import gpu_name

    return cached_gpu(folder, gpu_name())


def threads() -> int:
    """Returns the threads that work on this machine may use."""
    from egg.analysis.device import usable_cores

    return usable_cores()


def analyst() -> Analyst:
    """Returns the analyst of this machine."""
    from egg.analysis.analyst import TorchAnalyst

    return TorchAnalyst()


def find_task(spec: str, inputs: str | None = None) -> Task:
    """Returns the task that `spec` names; `inputs` is the `module:function` that draws its inputs.

    Raises UsageError where nothing has that name, TaskError where the task can't run.
    """
    from egg.tasks.find import find_task

    is_file = ".py" in spec or "/" in spec
    folders = () if is_file else (os.getcwd(),)  # as `python -m` looks for modules
    if inputs is None:
        return find_task(spec, search_path=folders)
    if re.fullmatch(r"[\w.]+(:\w+)?", inputs) is None:
        raise UsageError(f"--inputs {inputs!r}: name a function as module:function")
    if is_file:
        raise UsageError(
            f"--inputs {inputs!r}: the file {spec} draws its own inputs by get_inputs; leave --inputs away"
        )
    return find_task(f"{spec}{'&' if '?' in spec else '?'}inputs={inputs}", search_path=folders)


def start(task: Task, folder: Path, request: Request, listeners: Sequence[Listener] = ()) -> RunState:
    """Returns the finished state of a new run in `folder`, with its files written. Raises EggError."""
    from egg import engine
    from egg.archive import RunFolder
    from egg.schema.run import RunState

    check_free(folder)
    principles = load_principles(request.principles)
    started = run_started(task, measured_device(), request)
    with RunFolder.create(folder) as archive:
        _keep_principles(request.principles, folder)
        with machine(RunState(started=started), archive, principles, listeners) as parts:
            state = engine.run(parts, started)
        write_files(state, folder, principles)
    return state


def resume(folder: Path, listeners: Sequence[Listener] = ()) -> RunState:
    """Returns the finished state of the run in `folder`, going on from where it stopped. Raises EggError."""
    from egg import engine
    from egg.archive import RunFolder

    _require_run(folder)
    principles = load_principles(_kept_principles(folder))
    with RunFolder.open(folder) as archive:
        _warn_of(archive)
        so_far = read(folder)
        if so_far.outcome is None:
            with machine(so_far, archive, principles, listeners) as parts:
                so_far = engine.resume(parts)
        write_files(so_far, folder, principles)
    return so_far


def replay(folder: Path) -> RunState:
    """Returns the state of the run in `folder`, with its files written again; nothing is executed."""
    state = read(folder)
    write_files(state, folder, load_principles(_kept_principles(folder)))
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
        versions=versions(),
    )


def versions() -> dict[str, str]:
    """Returns the versions of what a result depends on; what is not installed is left out."""
    found = {"egg": egg.__version__, "python": platform.python_version(), "platform": platform.platform()}
    for name in ("torch", "apache-tvm-ffi", "triton"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@contextmanager
def machine(
    so_far: RunState, archive: RunFolder, principles: Sequence[Principle], listeners: Sequence[Listener]
) -> Generator[Machine]:
    """Gives the machine of one run that has come `so_far`, and ends its workers afterwards."""
    from egg.evaluation.evaluator import House, LocalEvaluator
    from egg.evaluation.tiers import Limits
    from egg.expert.author import ExpertAuthor
    from egg.knowledge.matcher import match
    from egg.planning.planner import RulePlanner
    from egg.protocols import Machine

    task, config = so_far.started.task, so_far.started.config
    author = ExpertAuthor(so_far.started.device, principles)
    with tempfile.TemporaryDirectory(prefix="egg-") as work:

        def make(found: tuple[Analysis, ...]) -> LocalEvaluator:
            # The built-in author's code is EGG's own: a machine that offers little isolation may still be searched on.
            house = House(Limits.trusting(), audits=cache_folder() / "audits")
            made = LocalEvaluator(task, config, Path(work), found, house)
            try:
                made.refuse_barred()  # before anything is measured
            except BaseException:
                made.close()
                raise
            return made

        evaluator = LateEvaluator(make, so_far.analyses)
        try:
            yield Machine(
                analyst=analyst(),
                planner=RulePlanner(lambda facts: match(principles, facts)),
                code=author,
                profile=author,
                debug=author,
                evaluator=evaluator,
                archive=archive,
                clock=time.monotonic,
                listeners=(evaluator, *listeners),
            )
        finally:
            evaluator.close()


class LateEvaluator:
    """An evaluator that is made when it is first used. It listens to the run, so it knows the analyses by then."""

    def __init__(self, make: Callable[[tuple[Analysis, ...]], Evaluator], analyses: tuple[Analysis, ...]) -> None:
        self._make = make
        self._analyses = analyses
        self._made: Evaluator | None = None

    def on_plan(self, state: RunState, plan: StagePlan) -> None:
        """Changes nothing."""

    def on_event(self, state: RunState, event: Event) -> None:
        """Remembers the analyses."""
        self._analyses = state.analyses

    def baseline(self, name: str) -> Baseline:
        """Returns one rung of the ladder."""
        return self._evaluator().baseline(name)

    def evaluate(self, candidate: Candidate, tier: Tier, allowance_s: float) -> Evaluation:
        """Returns what was seen of a candidate."""
        return self._evaluator().evaluate(candidate, tier, allowance_s)

    def close(self) -> None:
        """Ends every worker, where there are any."""
        if self._made is not None:
            self._made.close()

    def _evaluator(self) -> Evaluator:
        if self._made is None:
            self._made = self._make(self._analyses)
        return self._made


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
    _write(folder / RESULT, as_json(result(state)))


def as_json(value: Any) -> str:
    """Returns JSON as the command line prints and stores it. Figures that are not finite are a fault of the house."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _warn_of(archive: RunFolder) -> None:
    for text in archive.warnings:
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _require_run(folder: Path) -> None:
    if not (folder / LOG).is_file():
        raise UsageError(f"{folder} holds no run: it has no {LOG}; name the folder that `egg optimize` wrote")


def _keep_principles(source: Path | None, folder: Path) -> None:
    if source is not None:
        shutil.copytree(source, folder / PRINCIPLES, dirs_exist_ok=True)


def _kept_principles(folder: Path) -> Path | None:
    kept = folder / PRINCIPLES
    return kept if kept.is_dir() else None
