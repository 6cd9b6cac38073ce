"""Resolves what a piece of a syntax tree names: through imports, aliases, `getattr` and assembled constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_IMPORTS = ("__import__", "importlib.import_module")
_DICTIONARIES = ("__dict__",)


class Names:
    """The names that a file binds to things of other modules. Scopes are not told apart: a rule looks, it proves not.

    `dotted` gives `torch.allclose` for `t.allclose` after `import torch as t`, for `getattr(t, "all" + "close")` and
    for `sys.modules["torch"].__dict__["allclose"]`.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._bound: dict[str, str] = {}
        self._reached: set[str] = set()
        self.defined = {n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef | ast.FunctionDef)}
        for node in ast.walk(tree):
            self._bind_import(node)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and (value := self.dotted(node.value)) and self.is_foreign(value):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self._bound[target.id] = value

    def dotted(self, node: ast.AST) -> str:
        """Returns the dotted name of an expression; empty where it has none that can be read."""
        match node:
            case ast.Name(id=name):
                return self._bound.get(name, name)
            case ast.Attribute(value=value, attr=attr):
                base = self.dotted(value)
                return f"{base}.{attr}" if base and attr not in _DICTIONARIES else base
            case ast.Subscript(value=value, slice=key):
                return self._item(self.dotted(value), constant(key))
            case ast.Call(func=function, args=[first, *rest]):
                return self._call(self.dotted(function), first, rest)
            case _:
                return ""

    def is_foreign(self, name: str) -> bool:
        """Returns whether a dotted name belongs to an imported module or to the builtins."""
        root = name.partition(".")[0]
        return root in self._roots or root in self._reached or root == "builtins"

    @property
    def _roots(self) -> set[str]:
        return {value.partition(".")[0] for value in self._bound.values()}

    def imported(self) -> set[str]:
        """Returns the dotted names that the file imports."""
        return set(self._bound.values())

    def _bind_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._bound[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                self._bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def _item(self, base: str, key: str | None) -> str:
        if key is None or not base:
            return ""
        return self._module(key) if base == "sys.modules" else f"{base}.{key}"

    def _module(self, name: str) -> str:
        self._reached.add(name.partition(".")[0])
        return name

    def _call(self, function: str, first: ast.expr, rest: list[ast.expr]) -> str:
        if function in _IMPORTS:
            return self._module(constant(first) or "")
        if function == "getattr" and rest and (attr := constant(rest[0])):
            base = self.dotted(first)
            return f"{base}.{attr}" if base else ""
        if function == "vars":
            return self.dotted(first)
        return ""


def constant(node: ast.AST) -> str | None:
    """Returns the text of an expression that is put together from constants; None where it is not."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [constant(left), constant(right)]
        case ast.JoinedStr(values=values):
            parts = [constant(value) for value in values]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join"), args=[items]):
            parts = [constant(item) for item in items.elts] if isinstance(items, ast.List | ast.Tuple) else [None]
        case _:
            return None
    return "".join(part for part in parts if part is not None) if None not in parts else None


def lines_of(node: ast.AST) -> int:
    """Returns the first line of a node."""
    return int(getattr(node, "lineno", 0))


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yields every call below a node."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))
