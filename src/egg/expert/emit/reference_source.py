"""The text of a task's file, cut down to what its class needs and renamed for a candidate."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from egg.expert.emit.signature import Signature, signature_of

CLASS = "ModelNew"


@dataclass(frozen=True)
class ReferenceSource:
    """The reference's class as the base of a candidate."""

    head: str
    """Imports, helper classes and constants that the class uses, in their order."""
    body: str
    """The class, renamed, with `forward` renamed to `forward_reference`; the generated methods go to its end."""
    indent: str
    signature: Signature
    """Of `forward`."""


@dataclass(frozen=True)
class _Edit:
    start: int
    stop: int
    text: str


def reference_source(source: str, class_name: str) -> ReferenceSource | None:
    """Returns the class of a task's file ready to be extended.

    None where text alone does not tell: the class or its forward is defined elsewhere, or an import is relative.
    """
    tree = ast.parse(source)
    cls = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name), None)
    if cls is None or any(isinstance(n, ast.ImportFrom) and n.level for n in ast.walk(tree)):
        return None
    forward = _method(cls, "forward")
    if forward is None:
        return None
    needed = _needed(tree.body, cls)
    if _taken(needed, class_name):
        return None
    text = _Text(source)
    edits = [_Edit(*text.name_span(cls), CLASS), _Edit(*text.name_span(forward), "forward_reference")]
    edits += [
        _Edit(*text.span(n), CLASS)
        for top in needed
        for n in ast.walk(top)
        if isinstance(n, ast.Name) and n.id == class_name
    ]
    head = [text.cut(top, edits) for top in needed if top is not cls]
    own = text.cut(cls, edits)
    return ReferenceSource(_joined(needed, head, cls), own, " " * cls.body[0].col_offset, signature_of(forward))


def _method(cls: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == name), None)


def _needed(body: Sequence[ast.stmt], cls: ast.ClassDef) -> list[ast.stmt]:
    """Returns the top-level statements that the class depends on, itself included, in order."""
    keep: set[int] = {id(cls)}
    wanted = _used(cls)
    changed = True
    while changed:
        changed = False
        for statement in body:
            if id(statement) in keep or _is_left_out(statement):
                continue
            bound = _bound(statement)
            if bound & wanted or not bound:
                keep.add(id(statement))
                wanted |= _used(statement)
                changed = True
    return [s for s in body if id(s) in keep]


def _is_left_out(statement: ast.stmt) -> bool:
    """Returns whether a statement is no part of the model: a docstring, or what runs when the file is the program."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    return isinstance(statement, ast.If) and "__name__" in _used(statement)


def _used(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        name.strip() for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
        for name in n.value.replace("[", " ").replace("]", " ").split() if name.isidentifier() and len(n.value) < 80
    }  # fmt: skip


def _bound(statement: ast.stmt) -> set[str]:
    """Returns the names that a top-level statement defines; none means that it is run for its effect."""
    match statement:
        case ast.Import() | ast.ImportFrom():
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                return set()
            return {(a.asname or a.name).split(".")[0] for a in statement.names}
        case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
            return {statement.name}
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and not _is_attribute(t)}
        case _:
            names = (n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
            inner = (_bound(s) for s in ast.walk(statement) if isinstance(s, ast.Import | ast.ImportFrom))
            return {n.id for n in names} | {name for found in inner for name in found}


def _is_attribute(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute)


def _taken(needed: Iterable[ast.stmt], class_name: str) -> bool:
    """Returns whether a kept statement other than the class defines a name that the candidate defines too."""
    own = {CLASS, "SCHEDULE", "SCHEDULE_SPACE", "KERNEL_SOURCE", *dir(builtins)} - {class_name}
    return any(_bound(s) & own for s in needed if not (isinstance(s, ast.ClassDef) and s.name == class_name))


def _joined(needed: Sequence[ast.stmt], texts: Sequence[str], cls: ast.ClassDef) -> str:
    """Returns the statements one after the other, with two blank lines around definitions. `__future__` is left out."""
    parts: list[str] = []
    for statement, text in zip([s for s in needed if s is not cls], texts, strict=True):
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            continue
        wide = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        parts.append(f"\n\n{text}\n\n" if wide else text)
    return "\n".join(parts).strip("\n").replace("\n\n\n\n\n", "\n\n\n")


class _Text:
    """Source text addressed by the positions that `ast` gives, which count UTF-8 bytes."""

    def __init__(self, source: str) -> None:
        self._raw = source.encode()
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line.encode()))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Returns the byte range of a node."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[end_line - 1] + end_column

    def name_span(self, node: ast.ClassDef | ast.FunctionDef) -> tuple[int, int]:
        """Returns the byte range of the name in a definition."""
        start, stop = self.span(node)
        keyword = b"class" if isinstance(node, ast.ClassDef) else b"def"
        at = self._raw.index(node.name.encode(), self._raw.index(keyword, start, stop) + len(keyword), stop)
        return at, at + len(node.name.encode())

    def cut(self, statement: ast.stmt, edits: Sequence[_Edit]) -> str:
        """Returns the text of a statement, decorators included, with the edits inside it made."""
        start, stop = self.span(statement)
        for decorator in getattr(statement, "decorator_list", []):
            start = min(start, self._starts[decorator.lineno - 1] + statement.col_offset)
        parts: list[bytes] = []
        at = start
        for edit in sorted({(e.start, e.stop, e.text) for e in edits if start <= e.start and e.stop <= stop}):
            parts += [self._raw[at : edit[0]], edit[2].encode()]
            at = edit[1]
        return b"".join((*parts, self._raw[at:stop])).decode()
