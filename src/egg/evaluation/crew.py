"""Starts the workers of one task, with their folders, and loads what each may know."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from egg.errors import SandboxError
from egg.evaluation.desk import CandidateDesk, ReferenceDesk
from egg.evaluation.devices.nvml import Gpu
from egg.evaluation.health import Health
from egg.evaluation.spares import Called, Spares, forget
from egg.evaluation.tiers import Limits
from egg.evaluation.workers.workplace import Post, Role, Worker, Workplace
from egg.schema.base import content_hash
from egg.schema.evaluation import UNKNOWN
from egg.schema.run import Config
from egg.schema.task import Task


@dataclass(frozen=True)
class Engaged:
    """A reference worker with the task loaded, and what a candidate needs to be constructed alike."""

    desk: ReferenceDesk
    init: object
    """Tree of the constructor's arguments, written in `folder`."""
    seed: int
    folder: Path
    flags: dict[str, str]
    """PyTorch's settings, under which a candidate has to run too."""
    described: dict[str, str]
    """Versions and settings that the figures rest on."""


class Crew:
    """Starts and ends workers. Owns the folders `workers`, `builds` and `exchange` in its working directory."""

    def __init__(
        self,
        task: Task,
        workplace: Workplace,
        workdir: Path,
        limits: Limits,
        config: Config,
        gpu: Gpu | None = None,
    ) -> None:
        self.task = task
        self.config = config
        self.limits = limits
        self.gpu = gpu
        """What the management library says of the GPU; None where there is none, or nobody to ask."""
        self._workplace = workplace
        self._workdir = workdir
        for name in ("workers", "builds", "exchange"):  # a run that was killed leaves half-written builds and locks
            shutil.rmtree(workdir / name, ignore_errors=True)
        self._numbers = count()
        self.spares = Spares(lambda: self._call(self.builds(f"spare-{next(self._numbers)}"), fresh=False))
        self.health = Health(self.call_probe, self.dismiss, self._clear)

    def start_method(self, fresh: bool) -> str:
        """Returns how workers are started."""
        return self._workplace.start_method(fresh)

    def exchange(self) -> Path:
        """Returns a new empty folder for tensors on their way between workers."""
        folder = self._workdir / "exchange" / content_hash("exchange", str(next(self._numbers)))
        folder.mkdir(parents=True)
        return folder

    def call_probe(self) -> Worker:
        """Returns a worker that is starting, which tries the device and knows no task. Raises SandboxError."""
        return self._start("probe", self.builds("probe"), False, None)

    def call_reference(self, fresh: bool) -> Worker:
        """Returns a reference worker that is starting. Raises SandboxError."""
        builds = self.builds(f"reference-{self.task.content_hash}")
        return self._start("reference", builds, fresh, self.limits.memory_bytes())

    def engage_reference(self, fresh: bool, called: Worker | None = None) -> Engaged:
        """Returns a reference worker with the task loaded; the one `called`, where one was.

        Raises SandboxError, TaskError or ReferenceLost.
        """
        desk = ReferenceDesk(called or self.call_reference(fresh), self.limits, self.config.target)
        folder = self.exchange()
        try:
            desk.worker.ready()
            answer = desk.ask("load", task=self.task.model_dump_json(), folder=str(folder), policy=self.config.policy)
        except BaseException:
            self.dismiss(desk.worker)
            raise
        return Engaged(desk, answer["init"], answer["seed"], folder, answer["flags"], answer["described"])

    def call_candidate(self, candidate_id: str, fresh: bool) -> Called:
        """Returns a candidate worker that is starting, which takes a while where it is fresh. Raises SandboxError.

        Of all folders that tensors travel in, it reaches its own `exchange` alone.
        """
        builds = self.builds(candidate_id)
        if fresh or self.config.target == "cpu":
            return self._call(builds, fresh)
        return self.spares.take(builds)

    def _call(self, builds: Path, fresh: bool) -> Called:
        exchange = self.exchange()
        return Called(self._start("candidate", builds, fresh, self.limits.memory_bytes(), exchange), exchange, builds)

    def engage_candidate(self, worker: Worker, left_s: Callable[[], float], required: Iterable[str]) -> CandidateDesk:
        """Returns the desk of a candidate worker that knows nothing yet.

        Raises SandboxError where it did not start, or where no layer gives a `required` guarantee of isolation.
        """
        worker.ready()
        if unmet := worker.isolation.unmet(required):
            raise SandboxError(
                f"a figure to publish needs isolation of {', '.join(unmet)}, which no layer gives here: "
                f"{'; '.join(worker.isolation.missing)}. "
                "If you trust the code, pass --trusted or leave them out of `required_isolation`"
            )
        return CandidateDesk(worker, self.limits, left_s)

    def dismiss(self, worker: Worker) -> None:
        """Ends a worker and removes its private folder."""
        worker.end()
        shutil.rmtree(worker.folder, ignore_errors=True)

    def _clear(self) -> None:
        """Ends the worker that waits, which saw the device as it was, and lets memory come back."""
        self.spares.close()
        if self.gpu is not None:
            self.gpu.settle()

    def builds(self, owner: str) -> Path:
        """Returns the folder of compiled code of one candidate."""
        return self._workdir / "builds" / owner

    def forget_builds(self, owner: str) -> None:
        """Removes compiled code that may be half written, with any lock on it."""
        forget(self.builds(owner))

    def _start(
        self, role: Role, builds: Path, fresh: bool, memory_bytes: int | None, exchange: Path | None = None
    ) -> Worker:
        folder = self._workdir / "workers" / content_hash(role, str(next(self._numbers)))
        post = Post(role, folder, builds, fresh, memory_bytes, self.config.target, exchange, self.limits.readable)
        return self._workplace.start(post)


def difference_in_settings(mine: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Returns the first setting that two workers do not share, in words; empty where they share all."""
    for name, value in mine.items():
        if value != theirs.get(name):
            return f"{name} is {value}, and {theirs.get(name, UNKNOWN)} in the other"
    return ""
