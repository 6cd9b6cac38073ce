"""The run folder.

events.jsonl        one event a line, in order
sources/<hash>.py   sources of the task and of every candidate
blobs/<hash>.json   graphs and pickled modules
torn/<n>.bin        what a crash left behind the last complete event
run.lock            held by the process that writes; the system frees it when that process ends
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from egg.archive.log import LogText, append_line, read_log
from egg.archive.references import EventCodec
from egg.archive.store import TextStore, sync_folder
from egg.errors import ArchiveError
from egg.schema.run import Event

LOG_NAME = "events.jsonl"


class RunFolder:
    """The archive of one run. Make it with `create`, `open` or `read`; close it, or use it in a `with` statement."""

    def __init__(self, path: Path, lock: FileLock | None) -> None:
        self.path = path
        self.warnings: tuple[str, ...] = ()
        """What was set aside when the folder was opened, one sentence each."""
        self._log = path / LOG_NAME
        self._lock = lock
        self._codec = EventCodec(TextStore(path / "sources", ".py"), TextStore(path / "blobs", ".json"))

    @classmethod
    def create(cls, path: Path) -> Self:
        """Returns a new, locked folder without events. Raises ArchiveError where the folder already holds a run.

        A folder whose run was killed before its first event was complete is taken as new.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArchiveError(f"can't make the run folder {path}: {error.strerror}; choose another path") from error
        folder = cls(path, _locked(path))
        try:
            folder._log.touch()
            if read_log(folder._log).lines:
                raise ArchiveError(f"{path} already holds a run; resume it, or choose another folder")
            folder._clean_up()
            sync_folder(path)
        except BaseException:
            folder.close()
            raise
        return folder

    @classmethod
    def open(cls, path: Path) -> Self:
        """Returns the locked folder of a run to go on with. Raises ArchiveError where it is no run, or in use."""
        _require_run(path)
        folder = cls(path, _locked(path))
        try:
            folder._clean_up()
        except BaseException:
            folder.close()
            raise
        return folder

    @classmethod
    def read(cls, path: Path) -> Self:
        """Returns the folder for reading alone: it takes no lock and changes no file. Raises ArchiveError."""
        _require_run(path)
        folder = cls(path, None)
        text = read_log(folder._log)
        if text.torn:
            folder.warnings = (_torn_warning(folder._log, text, "ignored"),)
        return folder

    def append(self, event: Event) -> None:
        """Stores one event, durable on return. Raises ArchiveError where it can't be written."""
        if self._lock is None:
            raise ArchiveError(f"{self.path} is open for reading alone; open it with RunFolder.open to append")
        append_line(self._log, self._codec.encode(event))

    def events(self) -> Iterator[Event]:
        """Yields the stored events in order. Raises ArchiveError where one can't be read."""
        for line in read_log(self._log).lines:
            yield self._codec.decode(line)

    def close(self) -> None:
        """Frees the folder for other processes; nothing can be appended after it."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _clean_up(self) -> None:
        """Leaves a log of whole lines; what was torn moves to a file of its own first, so that no byte is lost."""
        self._codec.sources.drop_unfinished()
        self._codec.blobs.drop_unfinished()
        text = read_log(self._log)
        if text.torn:
            aside = self._next_torn()
            aside.parent.mkdir(exist_ok=True)
            aside.write_bytes(text.torn)
            self.warnings = (_torn_warning(self._log, text, f"moved to {aside}"),)
        if text.torn or not text.ends_line:
            with self._log.open("r+b") as file:
                file.truncate(text.intact_bytes)
                file.seek(0, 2)
                file.write(b"" if text.ends_line else b"\n")

    def _next_torn(self) -> Path:
        folder = self.path / "torn"
        taken = len(list(folder.glob("*.bin"))) if folder.exists() else 0
        return folder / f"{taken + 1}.bin"


def _require_run(path: Path) -> None:
    if not path.is_dir():
        raise ArchiveError(f"there is no run folder {path}; pass the folder that the run was written to")
    if not (path / LOG_NAME).is_file():
        raise ArchiveError(f"{path} is not a run folder: it has no {LOG_NAME}; pass the folder a run was written to")


def _locked(path: Path) -> FileLock:
    # An flock belongs to the process: a run that was killed leaves the file behind, but never the lock.
    lock = FileLock(path / "run.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ArchiveError(f"{path} is being written by another process; wait for it or end it") from None
    except OSError as error:
        raise ArchiveError(f"can't lock {path}: {error.strerror}; choose a folder that can be written") from error
    return lock


def _torn_warning(log: Path, text: LogText, what: str) -> str:
    return f"{log}: {len(text.torn)} bytes after event {len(text.lines)} were cut short by a crash and {what}"
