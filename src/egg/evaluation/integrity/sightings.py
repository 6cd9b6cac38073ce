"""What the text of a candidate holds that asks for a closer look. A sighting routes; it never convicts."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from egg.evaluation.integrity import native, rules
from egg.evaluation.integrity.names import Names


@dataclass(frozen=True)
class Sighting:
    """One place in the text."""

    line: int
    rule: str
    """Name of the rule, such as `fallback`."""
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.rule}: {self.what}"


def sightings(source: str) -> tuple[Sighting, ...]:
    """Returns what the rules see in a file, by line; nothing where it is no Python, which its import will tell.

    The rules read the syntax tree, never lines, so words in a comment or a docstring are not seen.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    names = Names(tree)
    seen = {Sighting(line, rule.__name__, what) for rule in rules.RULES for line, what in rule(tree, names)}
    seen |= {Sighting(line, "native", what) for line, what in native.native(tree)}
    return tuple(sorted(seen, key=lambda s: (s.line, s.rule, s.what)))
