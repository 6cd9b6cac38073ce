"""Texts by content hash, written once, never changed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from egg.errors import ArchiveError
from egg.schema.base import content_hash

_UNFINISHED = ".part"


@dataclass(frozen=True)
class TextStore:
    """A folder of files named by the hash of their content."""

    folder: Path
    suffix: str

    def put(self, text: str) -> str:
        """Returns the hash of `text`, which is on the disk by then. Raises ArchiveError where it can't be written."""
        raw = text.encode()
        name = content_hash(raw)
        path = self.folder / f"{name}{self.suffix}"
        if not (path.exists() and path.read_bytes() == raw):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                _write_durably(path, raw)
            except OSError as error:
                raise ArchiveError(
                    f"can't write {path}: {error.strerror}; free space or choose another folder"
                ) from error
        return name

    def get(self, name: str) -> str:
        """Returns the text with this hash. Raises ArchiveError where the file is missing or was changed."""
        path = self.folder / f"{name}{self.suffix}"
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise ArchiveError(f"can't read {path}: {error.strerror}; restore it from a copy of the run") from error
        if content_hash(raw) != name:
            raise ArchiveError(f"{path} was changed after it was stored; restore it from a copy of the run")
        return raw.decode()

    def drop_unfinished(self) -> None:
        """Removes what a killed process had not finished writing; for the one process that writes."""
        for path in self.folder.glob(f"*{_UNFINISHED}"):
            path.unlink()


def _write_durably(path: Path, raw: bytes) -> None:
    """Writes all or nothing: a reader sees the whole file or none, also after a power cut."""
    temporary = path.with_name(path.name + _UNFINISHED)
    with temporary.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes the names in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
