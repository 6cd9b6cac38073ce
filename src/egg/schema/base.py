"""The base of every record: frozen, closed, documented, serialisable as JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen value without extra fields. Equal content means equal records."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        ser_json_inf_nan="constants",
        protected_namespaces=(),
    )

    def updated(self, **changes: Any) -> Self:
        """Returns a validated copy with `changes` applied."""
        return type(self).model_validate({**dict(self), **changes})


def content_hash(*parts: str | bytes) -> str:
    """Returns the first 16 hex digits of the SHA-256 of the length-prefixed parts."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(raw)}:".encode())
        digest.update(raw)
    return digest.hexdigest()[:16]


def canonical_json(value: Any) -> str:
    """Returns JSON with sorted keys and no blanks, so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
