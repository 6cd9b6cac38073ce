"""The reference worker that serves one candidate after another, and is replaced where it is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from egg.errors import SandboxError
from egg.evaluation.crew import Crew, Engaged
from egg.evaluation.desk import ReferenceLost

T = TypeVar("T")


class StandingReference:
    """Holds one reference worker between requests."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._engaged: Engaged | None = None

    def engaged(self) -> Engaged:
        """Returns the worker, a new one where there is none alive. Raises SandboxError, TaskError or ReferenceLost."""
        self._crew.health.assure()
        if self._engaged is None or not self._engaged.desk.worker.alive:
            self.dismiss()
            self._engaged = self._crew.engage_reference(fresh=False)
        return self._engaged

    def serve(self, work: Callable[[Engaged], T]) -> T:
        """Returns what `work` gives with the worker; a lost one is rebuilt once. Raises SandboxError for the second."""
        try:
            return self._served(work)
        except ReferenceLost as loss:
            self.lose(loss)
        try:
            return self._served(work)
        except ReferenceLost as loss:
            self.lose(loss)
            raise SandboxError(f"the reference worker was lost twice: {loss}") from loss

    def _served(self, work: Callable[[Engaged], T]) -> T:
        """Returns what `work` gives, once the worker has let go of the memory of a GPU, which others need."""
        engaged = self.engaged()
        found = work(engaged)
        if self._crew.config.target != "cpu":
            engaged.desk.ask("rest")
        return found

    def lose(self, loss: ReferenceLost) -> None:
        """Ends the worker where it is still there, and has the device tried that it was lost on."""
        self.dismiss()
        if self._crew.config.target != "cpu":
            self._crew.health.doubt(f"the loss of the reference worker in {loss}")

    def dismiss(self) -> None:
        """Ends the worker."""
        if self._engaged is not None:
            self._crew.dismiss(self._engaged.desk.worker)
            self._engaged = None
