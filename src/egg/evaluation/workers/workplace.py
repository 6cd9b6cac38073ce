"""Where work runs, as a Protocol: this machine now, other machines later."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from egg.evaluation.workers.activity import Activity
from egg.evaluation.workers.isolation import Isolation
from egg.evaluation.workers.wire import Message

Role = Literal["candidate", "reference", "probe"]
Loss = Literal["timeout", "exit", "signal", "memory", "protocol"]


@dataclass(frozen=True)
class Post:
    """What a worker is started with."""

    role: Role
    folder: Path
    """Its private folder: home, temporary files, working directory."""
    builds: Path
    """Folder of its compiled code, private to one candidate by content hash."""
    fresh: bool = False
    """True for a new interpreter; False allows a fork of a process that has only imported libraries."""
    memory_bytes: int | None = None
    """Limit on private memory; None for no limit."""
    target: str = "cpu"
    """What the role opens to compute on, before it shakes hands."""
    exchange: Path | None = None
    """Folder in which it finds and leaves tensors; a candidate reaches no other."""
    readable: tuple[Path, ...] = ()
    """Further files and folders that a candidate may read, such as a library of its author's."""


class WorkerLost(Exception):
    """A worker ended, or was ended, without an answer."""

    def __init__(self, loss: Loss, message: str, log: str = "") -> None:
        super().__init__(message)
        self.loss: Loss = loss
        self.message = message
        self.log = log


class WorkerFault(Exception):
    """A worker answered that an operation raised."""

    def __init__(self, fault: Message, log: str = "") -> None:
        self.type = _printable(fault.get("type"), _NAME_CHARS)
        self.message = _printable(fault.get("message"), _LINE_CHARS)
        self.detail = _printable(fault.get("detail"), _DETAIL_CHARS)
        self.cause = _printable(fault.get("cause") or "raise", _NAME_CHARS)
        """`raise`, `build` (a compiler refused it), `memory`, `device` (lost), or the worker's own verdict."""
        self.log = log
        super().__init__(f"{self.type}: {self.message}")


_NAME_CHARS, _LINE_CHARS, _DETAIL_CHARS = 200, 500, 8000


def _printable(claim: object, limit: int) -> str:
    """Returns a claim of a worker as a text that can be stored and shown, however odd it is."""
    return str(claim if claim is not None else "")[:limit].encode(errors="replace").decode()


class Worker(Protocol):
    """One process (group) that answers requests in turn."""

    @property
    def folder(self) -> Path:
        """Its private folder."""
        ...

    @property
    def isolation(self) -> Isolation:
        """The layers around it, once it is ready."""
        ...

    def ready(self) -> None:
        """Returns once it has shaken hands. Raises SandboxError where it did not start; safe to call twice."""
        ...

    def ask(self, op: str, deadline_s: float, **fields: object) -> Message:
        """Returns the answer of one that is ready.

        Raises WorkerFault where the operation raised, WorkerLost where no answer came.
        """
        ...

    @property
    def alive(self) -> bool:
        """True until it has ended."""
        ...

    @property
    def last_ask_s(self) -> float:
        """Seconds from request to reply of the last answered request, on the caller's clock."""
        ...

    def activity(self) -> Activity:
        """Returns what it and everything that it started do with the processor."""
        ...

    def log(self) -> str:
        """Returns what it printed: head and tail, with a mark where it was cut."""
        ...

    def end(self) -> None:
        """Ends it and everything that it started. Safe to call twice."""
        ...


class Workplace(Protocol):
    """Starts workers."""

    def start(self, post: Post) -> Worker:
        """Returns a worker that is starting. Raises SandboxError where the machine can't start one."""
        ...

    def start_method(self, fresh: bool) -> str:
        """Returns how workers are started: `fork of a warm process` or `new interpreter`."""
        ...

    def close(self) -> None:
        """Ends every worker."""
        ...
