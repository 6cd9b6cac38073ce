"""The rooms put together into one run, for the command line and the Python API alike.

Every import of a room that needs torch is inside the function that uses it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import egg
from egg.errors import UsageError

if TYPE_CHECKING:
    from egg.archive import RunFolder
    from egg.candidates.targets import Target
    from egg.protocols import Analyst, Evaluator, Listener, Machine
    from egg.schema.analysis import Analysis
    from egg.schema.candidate import Candidate
    from egg.schema.device import Device
    from egg.schema.evaluation import Baseline, Evaluation, Tier
    from egg.schema.plan import StagePlan
    from egg.schema.principle import Principle
    from egg.schema.run import Event, RunState
    from egg.schema.task import Task


def cache_folder() -> Path:
    """Returns the folder for what is worth keeping between runs; `EGG_CACHE_DIR` overrides it."""
    if own := os.environ.get("EGG_CACHE_DIR"):
        return Path(own).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache").absolute() / "egg"


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


def as_json(value: Any) -> str:
    """Returns JSON as the command line prints and stores it. Figures that are not finite are a fault of the house."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
