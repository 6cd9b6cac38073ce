"""One run on disk: an append-only event log and the large texts that it names by content hash."""

from egg.archive.folder import RunFolder

__all__ = ["RunFolder"]
