"""`egg.optimize` and `egg.verify`: the same work as the commands of these names, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from egg import compose, request, runs
from egg.errors import UsageError

if TYPE_CHECKING:
    from torch import nn

    from egg.candidates.read import Submission
    from egg.candidates.targets import AskedTarget
    from egg.protocols import Listener
    from egg.schema.evaluation import Tier
    from egg.schema.run import RunState
    from egg.schema.task import Policy, Task
    from egg.schema.verification import Verification
    from egg.verification import Verifier

    CandidateLike = str | os.PathLike[str] | type[nn.Module]
    """A path, the text of a file, or a class whose file can be read."""
    TaskLike = str | Path | tuple[nn.Module, Sequence[Any]]
    """A file, `package.module:Class`, or a live module with the arguments of its forward."""


@dataclass(frozen=True)
class Result:
    """What came of a run: the content of `result.json`, and where its files are."""

    folder: Path
    record: dict[str, Any]
    """The content of `result.json`."""
    state: RunState

    @property
    def kernel(self) -> Path:
        """The winner as one Python file that defines `ModelNew`."""
        return self.folder / runs.KERNEL

    @property
    def report(self) -> Path:
        """The report as one HTML file."""
        return self.folder / runs.REPORT

    @property
    def verified(self) -> bool:
        """True when the winner passed every check of the final measurement."""
        return bool(self.record["verified"])

    @property
    def speedup(self) -> dict[str, Any]:
        """Speedup by baseline with its interval, and `over_best`."""
        return self.record["speedup"]

    def load(self) -> nn.Module:
        """Returns the winner as a module with the reference's weights, in the reference's mode.

        Raises UsageError where the run has no verified winner.
        """
        return load_winner(self.state)


def optimize(
    module: nn.Module | str | Path,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    out: str | Path | None = None,
    policy: Policy = "strict",
    budget: str | int = "60s",
    seed: int = 0,
    model: str = "expert",
    principles: str | Path | None = None,
    listeners: Sequence[Listener] = (),
) -> Result:
    """Returns the result of optimising a task; files go to `out`, or to `egg-out/<task name>`.

    `module` is a live module, called with `args` and `kwargs`, or what `egg optimize` takes: a file or
    `package.module:Class`. `budget` is `60s`, `2m` or a number of attempts. Raises UsageError, TaskError and the
    other kinds of EggError.
    """
    request.check_author(model)
    request.check_policy(policy)
    budget_s, attempts = request.parse_budget(budget)
    own = None if principles is None else Path(principles)
    compose.load_principles(own)
    task = _task(module, args, kwargs)
    folder = request.default_folder(task.name) if out is None else Path(out)
    wanted = request.Request(policy, budget_s, attempts, seed, own)
    state = runs.start(task, folder, wanted, listeners)
    return _result(state, folder)


def verify(
    candidate: CandidateLike,
    task: TaskLike,
    *,
    inputs: str | None = None,
    entry: str = "ModelNew",
    policy: Policy = "strict",
    tier: Tier = "attest",
    ladder: Sequence[str] | None = None,
    trusted: bool = False,
    target: AskedTarget = "auto",
    large: bool = False,
    barred_ok: bool = False,
    verifier: Verifier | None = None,
) -> Verification:
    """Returns the verdict about a candidate: whether it computes what the task computes, and how fast.

    `candidate` is a path, the text of a file, or a class whose file can be read; `task` is what `egg optimize` takes
    (`inputs` names the maker of a class's inputs), or a live module with its arguments. A candidate that fails is a
    verdict; `explain()` says why. `trusted` goes on where the machine can't isolate it, and the verdict says so.
    `target` is where it runs: `cpu`, `cuda`, or `auto`, the GPU where there is one, but C++ for the CPU on the CPU.
    `large` tries it past 2^31 elements too, where memory allows; else the verdict says what it would take.
    `barred_ok` goes on with a task that the audit bars; the verdict is then labelled so, and `verified` is False.
    `verifier` keeps workers between calls. Raises UsageError and TaskError for what can't be verified as it is given,
    SandboxError where the house fails.
    """
    from egg.candidates.read import candidate_of
    from egg.verification import Asked, Verifier, check_ladder

    request.check_policy(policy)
    asked = Asked(policy, tier, check_ladder(ladder), trusted, target, large, barred_ok)
    submission = _submission(candidate, entry)
    found = _reference(task, inputs)
    checked = candidate_of(submission, found)
    if verifier is not None:
        return verifier.verify(found, checked, submission.name, asked)
    with Verifier() as own:
        return own.verify(found, checked, submission.name, asked)


def load_winner(state: RunState) -> nn.Module:
    """Returns the winner of a run with the reference's weights and mode. Raises UsageError where none was verified."""
    from egg.export.standalone import standalone
    from egg.tasks.load import init_arguments, materialize, module_from_text

    if state.outcome is None or not state.outcome.verified:
        raise UsageError(f"run {state.started.run_id} has no verified winner to load; its report says why")
    task, candidate = state.started.task, state.candidate(state.outcome.winner_id)
    reference = materialize(task, task.workloads[0], seed=0).module
    module = module_from_text(f"{candidate.id}.py", standalone(candidate), task.search_path)
    args, kwargs = init_arguments(task, seed=0)
    winner: nn.Module = getattr(module, candidate.entry)(*args, **kwargs)
    winner.load_state_dict(reference.state_dict())
    prepare = getattr(winner, "prepare", None)
    if callable(prepare):
        prepare()
    return winner.train(task.training)


def _result(state: RunState, folder: Path) -> Result:
    from egg.reports.result import result

    return Result(folder.absolute(), result(state), state)


def _task(module: nn.Module | str | Path, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> Task:
    if isinstance(module, str | Path):
        if args or kwargs:
            raise UsageError("args and kwargs belong to a live module; a file or an entry point draws its own inputs")
        return compose.find_task(str(module))
    from egg.tasks.find import task_from_module

    return task_from_module(module, tuple(args), kwargs)


def _submission(candidate: CandidateLike, entry: str) -> Submission:
    from egg.candidates.read import read_class, read_file, read_text

    if isinstance(candidate, type):
        return read_class(candidate)
    if isinstance(candidate, str) and "\n" in candidate:
        return read_text(candidate, entry)
    try:
        path = Path(candidate)
    except TypeError:
        kind = type(candidate).__name__
        raise UsageError(f"a candidate of type {kind}: give a path, the text of a file, or the class itself") from None
    return read_file(path, entry)


def _reference(task: TaskLike, inputs: str | None) -> Task:
    if isinstance(task, str | Path):
        return compose.find_task(str(task), inputs)
    try:
        module, args = task
        given = tuple(args)
    except (TypeError, ValueError):
        raise UsageError("task: give a file, package.module:Class, or a pair (module, inputs)") from None
    return _task(module, given, None)
