"""Candidate workers that start before there is a candidate for them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from egg.evaluation.workers.workplace import Worker


@dataclass(frozen=True)
class Called:
    """A candidate worker that is starting, and what of the file system is its own."""

    worker: Worker
    exchange: Path
    """Where tensors travel to and from it."""
    builds: Path
    """Where it keeps compiled code."""


class Spares:
    """Holds one worker that has run no candidate code and starts while another candidate is examined.

    A process with a GPU context can't be forked, and making a context takes a second or more.
    """

    def __init__(self, call: Callable[[], Called]) -> None:
        self._call = call
        self._spare: Called | None = None

    def take(self, builds: Path) -> Called:
        """Returns a worker that keeps its compiled code in `builds`; the one at hand, or a new one."""
        if self._spare is not None and not self._spare.worker.alive:
            self.close()
        called, self._spare = self._spare or self._call(), None
        adopt(builds, called.builds)
        return called

    def prepare(self) -> None:
        """Starts the next worker."""
        if self._spare is None:
            self._spare = self._call()

    def settle(self) -> None:
        """Returns once the next worker has started, so that it disturbs no timing. Raises SandboxError."""
        if self._spare is not None:
            self._spare.worker.ready()

    def close(self) -> None:
        """Ends the worker that nobody took."""
        if self._spare is not None:
            self._spare.worker.end()
            shutil.rmtree(self._spare.worker.folder, ignore_errors=True)
            shutil.rmtree(self._spare.exchange, ignore_errors=True)
            shutil.rmtree(self._spare.builds, ignore_errors=True)
            self._spare = None


def adopt(builds: Path, folder: Path) -> None:
    """Makes `folder`, which a confined worker may write, the place of `builds`, with what that held."""
    if builds.exists():
        for path in builds.iterdir():
            shutil.move(path, folder / path.name)
        forget(builds)
    builds.parent.mkdir(parents=True, exist_ok=True)
    builds.symlink_to(folder)


def forget(builds: Path) -> None:
    """Removes a folder of compiled code, also one that lies elsewhere by `adopt`."""
    if builds.is_symlink():
        shutil.rmtree(builds.resolve(), ignore_errors=True)
        builds.unlink()
    else:
        shutil.rmtree(builds, ignore_errors=True)
