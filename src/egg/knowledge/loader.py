"""Principles as Markdown files: `<folder>/<stage>/<id>.md`.

A file is a TOML header between two lines of `+++`, then the words for a person or a model:

    +++
    title = "Finish a row before touching the next one"
    applies_when = ["row_ops >= 1", 'bound in ["memory", "launch"]']
    moves = ["fuse.rows"]
    expects = "memory traffic down to one read and one write"
    +++

    Normalisations, softmax and reductions need a row several times ...

The folder gives the stage and the file name gives the id, so neither is written twice.
"""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from egg.errors import UsageError
from egg.schema.principle import STAGES, Predicate, Principle

_FENCE = "+++"
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_PREDICATE = re.compile(r"\s*(?P<fact>[A-Za-z_][\w.]*)\s*(?P<op>==|!=|<=|>=|<|>|\bin\b)\s*(?P<value>.+?)\s*")
_GIVEN_BY_PATH = ("id", "stage", "action")


def load_principles(*extra: Path) -> tuple[Principle, ...]:
    """Returns the built-in principles and those of the folders `extra`, in the order of the stages, then of the ids.

    A principle of a later folder replaces one of the same id. Raises UsageError for a file that can't be used.
    """
    found: dict[str, Principle] = {}
    for folder in (builtin_folder(), *extra):
        found.update({p.id: p for p in load_folder(folder)})
    return tuple(sorted(found.values(), key=lambda p: (STAGES.index(p.stage), p.id)))


def builtin_folder() -> Path:
    """Returns the folder of the principles that come with the package."""
    return Path(str(resources.files("egg.knowledge"))) / "principles"


def load_folder(folder: Path) -> tuple[Principle, ...]:
    """Returns the principles of one folder, by path. Raises UsageError for a folder or file that can't be used."""
    if not folder.is_dir():
        raise UsageError(f"principles {folder}: no such folder; give a folder that holds <stage>/<id>.md")
    found: dict[str, Path] = {}
    principles: list[Principle] = []
    for path in sorted(folder.rglob("*.md")):
        principle = load_file(path)
        if principle.id in found:
            raise UsageError(f"{path}: the id {principle.id!r} is taken by {found[principle.id]}; rename one file")
        found[principle.id] = path
        principles.append(principle)
    if not principles:
        raise UsageError(f"principles {folder}: holds no <stage>/<id>.md; stages are {', '.join(STAGES)}")
    return tuple(principles)


def load_file(path: Path) -> Principle:
    """Returns the principle in one file. Raises UsageError that names the file, the field and the fix."""
    stage = path.parent.name
    if stage not in STAGES:
        raise UsageError(f"{path}: the folder {stage!r} is no stage; move the file into one of {', '.join(STAGES)}")
    if not _ID.fullmatch(path.stem):
        raise UsageError(f"{path}: the file name is the id; use lower-case words joined by dashes: split-rows.md")
    header, body = _split(path)
    for name in _GIVEN_BY_PATH:
        if name in header:
            raise UsageError(f"{path}: field {name!r} is given by the path or the text; remove it from the header")
    if not body:
        raise UsageError(f"{path}: no text below the header; say there what to do and when not to")
    predicates = tuple(parse_predicate(text, path) for text in _strings(header.pop("applies_when", []), path))
    fields = {"id": path.stem, "stage": stage, "action": body, "applies_when": predicates, **_tuples(header)}
    try:
        return Principle.model_validate(fields)
    except ValidationError as e:
        raise UsageError(f"{path}: {_first_fault(e)}") from e


def parse_predicate(text: str, path: Path) -> Predicate:
    """Returns the condition that `text` states: `fact op value`, the value as TOML writes it. Raises UsageError."""
    match = _PREDICATE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{path}: field 'applies_when': {text!r} is no condition; write FACT OP VALUE, such as 'cores >= 2', "
            "with one of == != < <= > >= in"
        )
    try:
        value = tomllib.loads(f"value = {match['value']}")["value"]
    except tomllib.TOMLDecodeError as e:
        raise UsageError(
            f"{path}: field 'applies_when': {match['value']!r} is no value; write a number, true, false, "
            'a "word" in double quotes, or a list of those'
        ) from e
    if (match["op"] == "in") != isinstance(value, list):
        raise UsageError(f"{path}: field 'applies_when': {text!r}: 'in' needs a list, and only 'in' takes one")
    try:
        return Predicate.model_validate({"fact": match["fact"], "op": match["op"], "value": _tuple(value)})
    except ValidationError as e:
        raise UsageError(f"{path}: field 'applies_when': {text!r}: {_first_fault(e)}") from e


def _split(path: Path) -> tuple[dict[str, Any], str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"{path}: can't be read as UTF-8 text: {e}") from e
    if not lines or lines[0].strip() != _FENCE:
        raise UsageError(f"{path}: line 1: no header; start the file with a line of {_FENCE}")
    ends = [i for i, line in enumerate(lines[1:], 1) if line.strip() == _FENCE]
    if not ends:
        raise UsageError(f"{path}: the header does not end; close it with a line of {_FENCE}")
    try:
        header = tomllib.loads("\n".join(["", *lines[1 : ends[0]]]))
    except tomllib.TOMLDecodeError as e:
        raise UsageError(f"{path}: the header is not TOML: {e}") from e
    return header, "\n".join(lines[ends[0] + 1 :]).strip()


def _strings(value: Any, path: Path) -> list[str]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise UsageError(f"{path}: field 'applies_when': {value!r}; write a list of conditions in quotes")


def _tuples(header: dict[str, Any]) -> dict[str, Any]:
    return {name: _tuple(value) for name, value in header.items()}


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _first_fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    field = ".".join(str(part) for part in fault["loc"]) or "header"
    match fault["type"]:
        case "extra_forbidden":
            known = [name for name in Principle.model_fields if name not in _GIVEN_BY_PATH]
            return f"field {field!r} is unknown; use some of {', '.join(known)}"
        case "missing":
            return f"field {field!r} is missing; add it to the header"
        case _:
            return f"field {field!r}: {fault['msg']} (it is {fault['input']!r})"
