"""The C++ functions that printed kernels call, each printed only where it is used.

The text is in `functions.hpp` and, for templates, in `templates.hpp`, cut into pieces at lines `//: name`. A piece
names others that it calls; those are printed before it.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files


@cache
def pieces() -> dict[str, str]:
    """Returns the text of each function by name, in the order of the files."""
    folder = files("egg.expert.emit")
    whole = "\n".join(folder.joinpath(f).read_text(encoding="utf-8") for f in ("functions.hpp", "templates.hpp"))
    parts = re.split(r"^//: (\w+)\n", whole, flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def functions_used(code: str) -> str:
    """Returns the functions of namespace egg that `code` refers to as `egg::name`, with what they need, as C++ text.

    Raises ValueError for a name that is not in the file.
    """
    known = pieces()
    wanted = set(re.findall(r"\begg::(\w+)", code))
    unknown = sorted(wanted - known.keys())
    if unknown:
        raise ValueError(f"no C++ function egg::{unknown[0]}; functions.hpp lists those there are")
    waiting = list(wanted)
    while waiting:
        for name in _calls(waiting.pop()) - wanted:
            wanted.add(name)
            waiting.append(name)
    ordered: list[str] = []
    for name in known:
        if name in wanted:
            _place(name, ordered)
    return "\n\n".join(known[name] for name in ordered)


def _place(name: str, ordered: list[str]) -> None:
    if name in ordered:
        return
    for needed in sorted(_calls(name)):
        _place(needed, ordered)
    ordered.append(name)


@cache
def _calls(name: str) -> frozenset[str]:
    """Returns the names of other pieces that this piece calls."""
    code = re.sub(r"//.*", "", pieces()[name])
    return frozenset(re.findall(r"(?<![\w.:])(\w+)(?=(?:<[\w, ]+>)?\()", code)) & pieces().keys() - {name}
