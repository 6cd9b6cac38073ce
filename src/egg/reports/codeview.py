"""Source text as coloured HTML lines, and what changed between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String

_CLASSES = (
    (Comment, "c"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (String, "s"),
    (Number, "n"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "d"),
    (Name.Builtin, "b"),
)
_CPP_SIGNS = ("#include", "#pragma", 'extern "C"', "static inline ", "template <", "void ")
_CONTEXT = 3

Token = tuple[Any, str]
"""A token type of pygments, which has no public class, and its text."""


@dataclass(frozen=True)
class DiffLine:
    """One line of a comparison; a gap stands for equal lines that are left out."""

    kind: Literal["same", "old", "new", "gap"]
    old: int | None
    new: int | None
    html: Markup


def coloured_lines(source: str) -> list[Markup]:
    """Returns one HTML fragment a line of Python; C++ inside its strings is coloured as C++."""
    lines, line = [], Markup("")
    for kind, text in _with_cpp(PythonLexer(stripnl=False, ensurenl=False).get_tokens(source)):
        for at, part in enumerate(text.split("\n")):
            if at:
                lines.append(line)
                line = Markup("")
            line += _span(kind, part)
    return [*lines, line] if line else lines


def diff(old: str, new: str) -> list[DiffLine]:
    """Returns the lines that differ, with three equal lines around each difference."""
    before, after = old.splitlines(), new.splitlines()
    old_html, new_html = coloured_lines(old), coloured_lines(new)
    shown: list[DiffLine] = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT):
        if shown:
            shown.append(DiffLine("gap", None, None, Markup("")))
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                shown += [
                    DiffLine("same", i + 1, j + 1, new_html[j])
                    for i, j in zip(range(old_from, old_to), range(new_from, new_to), strict=True)
                ]
            else:
                shown += [DiffLine("old", i + 1, None, old_html[i]) for i in range(old_from, old_to)]
                shown += [DiffLine("new", None, j + 1, new_html[j]) for j in range(new_from, new_to)]
    return shown


def _with_cpp(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yields the tokens, with long strings that hold C++ taken apart as C++."""
    held: list[Token] = []
    for token in tokens:
        if token[0] in String and token[0] not in String.Doc:
            held.append(token)
            continue
        yield from _string(held)
        held = []
        yield token
    yield from _string(held)


def _string(parts: list[Token]) -> Iterable[Token]:
    text = "".join(text for _, text in parts)
    if "\n" in text and any(sign in text for sign in _CPP_SIGNS):
        lexer: Lexer = CppLexer(stripnl=False, ensurenl=False)
        return lexer.get_tokens(text)
    return parts


def _span(kind: Any, text: str) -> Markup:
    name = next((name for parent, name in _CLASSES if kind in parent), None)
    if not text or name is None:
        return escape(text)
    return Markup('<i class="{}">{}</i>').format(name, text)
