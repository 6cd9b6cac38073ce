"""Lines that survive a kill: what is complete stays, what was torn is told apart from what is damaged."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from egg.errors import ArchiveError


@dataclass(frozen=True)
class LogText:
    """The content of a log file."""

    lines: tuple[str, ...]
    """The complete records, one JSON text each."""
    torn: bytes
    """What follows the last complete record: half a record, or NULs that a crashed file system left."""
    ends_line: bool
    """False where the last complete record lacks its newline."""

    @property
    def intact_bytes(self) -> int:
        """Length of the part of the file that holds the complete records."""
        return sum(len(line.encode()) + 1 for line in self.lines) - (not self.ends_line)


def read_log(path: Path) -> LogText:
    """Returns the records of the file. Raises ArchiveError where a record in the middle can't be read."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ArchiveError(f"can't read {path}: {error.strerror}") from error
    pieces = raw.split(b"\n")
    texts = [_json_text(piece) for piece in pieces]
    count = texts.index(None) if None in texts else len(texts)
    if any(text is not None for text in texts[count:]):
        raise ArchiveError(f"{path}, line {count + 1} is damaged; restore it from a copy of the run")
    lines = tuple(text for text in texts[:count] if text is not None)
    return LogText(lines, torn=b"\n".join(pieces[count:]), ends_line=count < len(pieces))


def _json_text(raw: bytes) -> str | None:
    """Returns the line as text, or None where it is not a whole JSON object. Part of an object never is one."""
    try:
        text = raw.decode()
        return text if isinstance(json.loads(text), dict) else None
    except ValueError:
        return None


def append_line(path: Path, text: str) -> None:
    """Appends one line, durable on return; after any failure the file is as it was. Raises ArchiveError."""
    raw = text.encode() + b"\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    except OSError as error:
        raise ArchiveError(f"can't append to {path}: {error.strerror}") from error
    before = os.fstat(descriptor).st_size
    try:
        written = os.write(descriptor, raw)
        if written != len(raw):
            raise ArchiveError(f"can't append to {path}: {written} of {len(raw)} bytes fit; free space and resume")
        os.fsync(descriptor)
    except BaseException as error:
        os.ftruncate(descriptor, before)
        if isinstance(error, OSError):
            raise ArchiveError(f"can't append to {path}: {error.strerror}; free space and resume") from error
        raise
    finally:
        os.close(descriptor)
