"""Which fields of an event are stored apart, by content hash, and how they come back.

These fields always hold `sha:<hash>` in the log, whatever their size, so nothing has to be guessed when it is read:
a candidate's and a task's source, a task's pickled module, and the graph of an analysis.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from egg.archive.store import TextStore
from egg.errors import ArchiveError
from egg.schema.run import Event

_PREFIX = "sha:"
_EVENT: TypeAdapter[Event] = TypeAdapter(Event)
Fields = dict[str, Any]


@dataclass(frozen=True)
class EventCodec:
    """Turns events into lines and back, with the large texts in two stores."""

    sources: TextStore
    blobs: TextStore

    def encode(self, event: Event) -> str:
        """Returns one line of JSON; the texts that it names are stored by then."""
        fields = event.model_dump(mode="json")
        for place in _places(fields):
            store = self.sources if place.is_source else self.blobs
            text = json.dumps(place.value) if place.is_json else place.value
            place.put(_PREFIX + store.put(text))
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))

    def decode(self, line: str) -> Event:
        """Returns the event of a line. Raises ArchiveError where this version does not know it, or a text is lost."""
        try:
            fields = json.loads(line)
            for place in _places(fields):
                store = self.sources if place.is_source else self.blobs
                text = store.get(place.value.removeprefix(_PREFIX))
                place.put(json.loads(text) if place.is_json else text)
            return _EVENT.validate_json(json.dumps(fields))
        except (KeyError, TypeError, AttributeError, ValidationError) as error:
            raise ArchiveError(
                f"{line[:80]}... is no event that this version knows ({error}); read it with the version that wrote it"
            ) from error


@dataclass(frozen=True)
class _Place:
    """One field of an event's JSON that is stored apart."""

    value: Any
    put: Callable[[Any], None]
    is_source: bool = False
    is_json: bool = False


def _places(event: Fields) -> Iterator[_Place]:
    match event["type"]:
        case "run_started":
            task = event["task"]
            if task["source"]:
                yield _place(task, "source", is_source=True)
            if task["pickled"]:
                yield _place(task, "pickled")
        case "analyzed":
            for analysis in event["analyses"]:
                yield _place(analysis, "graph", is_json=True)
        case "attempt_finished":
            yield _place(event["attempt"]["candidate"], "source", is_source=True)
        case _:
            return


def _place(owner: Fields, name: str, is_source: bool = False, is_json: bool = False) -> _Place:
    def put(value: Any) -> None:
        owner[name] = value

    return _Place(owner[name], put, is_source, is_json)
